package submit

import (
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/kubetest"
)

const settingsFile = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {rate: "0.1"}
`

const mapsPath = "/api/v1/namespaces/research/configmaps"

// second is another job than the one of jobFile.
func second() string { return "---\n" + strings.Replace(jobFile, "llama", "bert", 1) }

// serving is a server that stores what it gets, except what it refuses: RESOURCE/NAME. What it stores can be deleted.
func serving(t *testing.T, refused map[string]*metav1.Status) *kubetest.Server {
	t.Helper()
	s := kubetest.New(t)
	s.Answer("GET /api/v1", 200, &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "persistentvolumes", Kind: "PersistentVolume"},
	}})
	for _, at := range []string{jobsPath, groupsPath, mapsPath, "/api/v1/persistentvolumes"} {
		s.HandleFunc("POST "+at, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(err)
			}
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(body); err != nil {
				panic(err)
			}
			if status := refused[path.Base(at)+"/"+u.GetName()]; status != nil && !r.URL.Query().Has("dryRun") {
				kubetest.Write(w, int(status.Code), status)
				return
			}
			u.SetUID(types.UID("uid-" + u.GetName()))
			kubetest.Write(w, http.StatusCreated, u.Object)
		})
		s.HandleFunc("DELETE "+at+"/{name}", func(w http.ResponseWriter, r *http.Request) {
			if status := refused["delete "+path.Base(at)+"/"+r.PathValue("name")]; status != nil {
				kubetest.Write(w, int(status.Code), status)
				return
			}
			kubetest.Write(w, 200, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
		})
	}
	return s
}

// refusing refuses one object.
func refusing(what, why string) map[string]*metav1.Status {
	return map[string]*metav1.Status{what: kubetest.Status(403, metav1.StatusReasonForbidden, why, nil)}
}

// creates are the requests that store something or take it away.
func creates(s *kubetest.Server) []string {
	var requests []string
	for _, r := range s.Requests() {
		if !strings.HasPrefix(r, "GET ") && !strings.Contains(r, "dryRun=All") && r != "POST "+whoAmI {
			path, _, _ := strings.Cut(r, "?")
			requests = append(requests, path)
		}
	}
	return requests
}

func TestBatchIsCreatedInOrder(t *testing.T) {
	s := serving(t, nil)
	out, errOut, failed := typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, jobFile+second()+settingsFile))
	want := "configmap/settings created\ntfjob.kubeflow.org/llama created\npodgroup.scheduling.x-k8s.io/llama created\n" +
		"tfjob.kubeflow.org/bert created\npodgroup.scheduling.x-k8s.io/bert created\n"
	if failed != nil || out != want || errOut != "" {
		t.Fatalf("got %v, %q, %q", failed, out, errOut)
	}
	if got := creates(s); !slices.Equal(got, []string{"POST " + mapsPath, "POST " + jobsPath, "POST " + groupsPath, "POST " + jobsPath, "POST " + groupsPath}) {
		t.Errorf("requests: %q", got)
	}
}

// Whatever fails takes all with it that was created before, the last first.
func TestBatchIsRolledBack(t *testing.T) {
	undone := []string{"DELETE " + jobsPath + "/llama", "DELETE " + mapsPath + "/settings"}
	tests := map[string]struct {
		text, refused string
		message       string
		deletes       []string
	}{
		"the second job":   {jobFile + settingsFile + second(), "tfjobs/bert", "create TFJob research/bert: no more; deleted again: TFJob research/llama, ConfigMap research/settings", undone},
		"its group":        {jobFile + settingsFile + second(), "podgroups/bert", "create PodGroup research/bert: no more; TFJob research/bert was deleted again; deleted again: TFJob research/llama, ConfigMap research/settings", append([]string{"DELETE " + jobsPath + "/bert"}, undone...)},
		"what is besides":  {jobFile + settingsFile, "configmaps/settings", "create ConfigMap research/settings: no more", nil},
		"the first object": {jobFile + settingsFile, "tfjobs/llama", "create TFJob research/llama: no more; deleted again: ConfigMap research/settings", undone[1:]},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serving(t, refusing(tt.refused, "no more"))
			out, _, failed := typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, tt.text))
			if failed == nil || failed.Message != tt.message || failed.Code != 1 || out != "" {
				t.Fatalf("got %+v, %q", failed, out)
			}
			var deletes []string
			for _, r := range creates(s) {
				if strings.HasPrefix(r, "DELETE ") {
					deletes = append(deletes, r)
				}
			}
			if !slices.Equal(deletes, tt.deletes) {
				t.Errorf("got %q, want %q", deletes, tt.deletes)
			}
		})
	}
}

func TestBatchCannotBeUndone(t *testing.T) {
	refused := refusing("tfjobs/llama", "no more")
	maps.Copy(refused, refusing("delete configmaps/settings", "not yours"))
	s := serving(t, refused)
	_, _, failed := typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, jobFile+settingsFile))
	if failed == nil || failed.Message != "create TFJob research/llama: no more; left behind, because deleting failed as well: ConfigMap research/settings: not yours" ||
		!strings.Contains(failed.Hint, "remove what is left with kubectl") {
		t.Errorf("got %+v", failed)
	}
}

// What is there already is used if it is the same, and never taken away.
func TestBatchFindsObjects(t *testing.T) {
	there := func(rate string, more map[string]*metav1.Status) *kubetest.Server {
		refused := map[string]*metav1.Status{"configmaps/settings": kubetest.Status(409, metav1.StatusReasonAlreadyExists, `configmaps "settings" already exists`, &metav1.StatusDetails{Name: "settings", Kind: "configmaps"})}
		maps.Copy(refused, more)
		s := serving(t, refused)
		s.Answer("GET "+mapsPath+"/settings", 200, map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "settings", "namespace": "research", "uid": "theirs"}, "data": map[string]any{"rate": rate, "more": "x"}})
		return s
	}
	t.Run("the same", func(t *testing.T) {
		s := there("0.1", nil)
		out, errOut, failed := typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, settingsFile[4:]+"---\n"+jobFile))
		if failed != nil || errOut != "note: ConfigMap research/settings is there already, as the file has it\n" || strings.Contains(out, "configmap") {
			t.Errorf("got %v, %q, %q", failed, out, errOut)
		}
		out, _, failed = typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, jobFile+settingsFile), "-o", "name")
		if failed != nil || !strings.HasPrefix(out, "configmap/settings\n") {
			t.Errorf("got %v, %q", failed, out)
		}
	})
	t.Run("another", func(t *testing.T) {
		s := there("0.2", nil)
		_, _, failed := typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, jobFile+settingsFile))
		if failed == nil || !strings.HasPrefix(failed.Message, "create ConfigMap research/settings: ") || !strings.Contains(failed.Hint, "differs in data.rate: see it with `kubectl get -n research configmaps settings -o yaml`") {
			t.Errorf("got %+v", failed)
		}
	})
	t.Run("the same, and the job fails", func(t *testing.T) {
		s := there("0.1", refusing("tfjobs/llama", "no more"))
		_, _, failed := typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, jobFile+settingsFile))
		if failed == nil || failed.Message != "create TFJob research/llama: no more" || slices.ContainsFunc(creates(s), func(r string) bool { return strings.HasPrefix(r, "DELETE") }) {
			t.Errorf("got %+v, %q", failed, creates(s))
		}
	})
}

func TestBatchQueriesWhatIsServed(t *testing.T) {
	s := serving(t, nil)
	volume := "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\n"
	if out, _, failed := typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, jobFile+volume), "--dry-run=server"); failed != nil || !strings.HasPrefix(out, "persistentvolume/disk created (server dry run)\n") {
		t.Errorf("got %v, %s", failed, out)
	}
	if got := creates(s); len(got) > 0 {
		t.Errorf("a dry run creates: %q", got)
	}
	s.Refuse("GET /apis/example.com/v1", 404, metav1.StatusReasonNotFound, "not found", nil)
	_, _, failed := typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, jobFile+"---\napiVersion: example.com/v1\nkind: Volume\nmetadata: {name: a}\n"))
	if failed == nil || failed.Message != "create Volume a: the cluster does not serve Volume of example.com/v1" || len(creates(s)) > 0 {
		t.Errorf("got %+v, %q", failed, creates(s))
	}
}
