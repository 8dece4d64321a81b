package gangcache

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/gang"
)

// A member that names another scheduler never comes, and is named.
func TestStrangersAreNamed(t *testing.T) {
	r := New(sink{}, MemberPriority)
	r.SetObject(objectGang, object(objectGang, 3))
	r.SetPod(pod("a", ofObject, scheduler("gang-scheduler")))
	c, b := pod("c", ofObject, scheduler("default-scheduler")), pod("b", ofObject, scheduler("volcano"))
	for _, change := range []Change{r.SetForeign(c), r.SetForeign(b)} {
		if !slices.Equal(change.Keys, []gang.Key{objectGang}) || len(change.Members) != 0 {
			t.Errorf("change %+v", change)
		}
	}
	if why := r.Incomplete(objectGang); !strings.HasSuffix(why, "1/3 pods exist, 2 of another scheduler: pod b has schedulerName volcano") {
		t.Errorf("Incomplete = %q", why)
	}
	r.DeleteForeign(b)
	if why := r.Incomplete(objectGang); !strings.HasSuffix(why, "1 of another scheduler: pod c has schedulerName default-scheduler") {
		t.Errorf("Incomplete = %q", why)
	}
	r.DeleteForeign(c)
	if why := r.Incomplete(objectGang); !strings.HasSuffix(why, "1/3 pods exist") || len(r.foreign) != 0 {
		t.Errorf("Incomplete = %q, %d gangs with strangers", why, len(r.foreign))
	}
}

func TestForeignPodsWithoutGangAreNoChange(t *testing.T) {
	r := New(sink{}, MemberPriority)
	if change := r.SetForeign(pod("a", ofObject)); len(change.Keys) != 0 {
		t.Errorf("a gang that is none of ours changes: %v", change.Keys)
	}
	if r.SetForeign(pod("b")); len(r.foreign[objectGang]) != 1 {
		t.Errorf("remembered %v", r.foreign)
	}
	r.SetPod(pod("c", ofObject, scheduler("gang-scheduler"))) // it becomes ours
	r.SetObject(objectGang, object(objectGang, 2))
	if why := r.Incomplete(objectGang); !strings.Contains(why, "pod a has schedulerName") {
		t.Errorf("Incomplete = %q", why)
	}
}

// Anybody may write any number of scheduler names.
func TestSchedulerNamesAreNotRemembered(t *testing.T) {
	r := New(sink{}, MemberPriority)
	for i := range 1000 {
		stranger := pod("a", ofObject, scheduler(fmt.Sprint("mine-", i)))
		r.SetForeign(stranger)
		r.NamedGang(stranger)
		r.DeleteForeign(stranger)
	}
	r.SetForeign(pod("b", ofObject, scheduler("volcano")))
	if n := len(r.ofForeign); n > 2 {
		t.Errorf("remembers %d", n)
	}
	if unknown, volcano := r.foreignPrecedence("mine"), r.foreignPrecedence("volcano"); len(unknown.Read) == len(volcano.Read) {
		t.Errorf("%d dialects are read of both", len(unknown.Read))
	}
}

func TestKeysAreThoseWithPods(t *testing.T) {
	r := New(sink{}, MemberPriority)
	r.SetObject(objectGang, object(objectGang, 3)) // maybe another scheduler's
	if keys := r.Keys(); len(keys) != 0 {
		t.Errorf("keys %v", keys)
	}
	r.SetPod(pod("b", ofLabels, needs("2")))
	r.SetPod(pod("a", ofObject))
	if keys := r.Keys(); !slices.Equal(keys, []gang.Key{labelGang, objectGang}) {
		t.Errorf("keys %v", keys)
	}
}
