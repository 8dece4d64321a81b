package sandboxtest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inventoryOf returns an inventory of objects that are written as GROUP/RESOURCE/NAMESPACE/NAME=UID.
func inventoryOf(texts ...string) *inventory {
	i := &inventory{objects: map[object]version{}}
	for _, text := range texts {
		key, uid, _ := strings.Cut(text, "=")
		part := strings.Split(key, "/")
		o := object{schema.GroupVersionResource{Group: part[0], Version: "v1", Resource: part[1]}, part[2], part[3]}
		i.objects[o] = version{uid: uid, resourceVersion: uid}
	}
	return i
}

func TestWithout(t *testing.T) {
	initial := inventoryOf("/namespaces//default=1", "/serviceaccounts/default/default=2")
	now := inventoryOf("/namespaces//default=1", "/serviceaccounts/default/default=2", "/nodes//node-1=3", "/pods/default/a=4", "batch/jobs/default/a=5",
		"/namespaces//team=6", "/pods/team/b=7", "apiextensions.k8s.io/customresourcedefinitions//x=8")
	var got []string
	for _, o := range now.without(initial) {
		got = append(got, o.String())
	}
	want := "default/jobs.batch/a namespaces/team default/pods/a customresourcedefinitions.apiextensions.k8s.io/x nodes/node-1"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

func TestRequireUnchanged(t *testing.T) {
	initial := inventoryOf("rbac.authorization.k8s.io/clusterroles//r=1", "/serviceaccounts/default/default=2", "coordination.k8s.io/leases/gangctl-system/l=3")
	for _, tt := range []struct {
		now  *inventory
		want string
	}{
		{inventoryOf("rbac.authorization.k8s.io/clusterroles//r=1", "/serviceaccounts/default/default=2"), ""},
		{inventoryOf("rbac.authorization.k8s.io/clusterroles//r=1"), "default/serviceaccounts/default is gone"},
		{inventoryOf("rbac.authorization.k8s.io/clusterroles//r=1", "/serviceaccounts/default/default=9"), "default/serviceaccounts/default is another one"},
	} {
		got := ""
		if err := initial.requireUnchanged(tt.now); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	changed := inventoryOf("rbac.authorization.k8s.io/clusterroles//r=1", "/serviceaccounts/default/default=2")
	for o, v := range changed.objects {
		changed.objects[o] = version{uid: v.uid, resourceVersion: "later"}
	}
	if err := initial.requireUnchanged(changed); err == nil || err.Error() != "clusterroles.rbac.authorization.k8s.io/r was changed" {
		t.Errorf("got %v", err)
	}
}
