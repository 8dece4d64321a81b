package submit

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// jobsOf is a file of jobs of 2 members with 8 GPUs each.
func jobsOf(names ...string) string {
	var docs []string
	for _, name := range names {
		docs = append(docs, strings.Replace(jobFile, "name: llama", "name: "+name, 1))
	}
	return strings.Join(docs, "---\n")
}

// inTeam is a command line for a file in namespace team, where the cluster of explaintest has its queues.
func inTeam(t *testing.T, c *clustertest.Cluster, text string, args ...string) (string, *failure.Error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := c.Done().Save(path); err != nil {
		t.Fatal(err)
	}
	out, _, failed := typeLine(t.Context(), noCluster, "", append([]string{"submit", "-f", file(t, strings.ReplaceAll(text, "{name: ", "{namespace: team, name: ")), "--dry-run=fit", "--from", path, "--scheduler", clustertest.Scheduler}, args...)...)
	return out, failed
}

func gpusIn(c *clustertest.Cluster, hard string) { quotaOf(c, "requests.nvidia.com/gpu", hard) }

// quotaOf is a quota of which nothing is used.
func quotaOf(c *clustertest.Cluster, key, hard string) {
	limit := clustertest.List(key, hard)
	c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: limit},
		Status: corev1.ResourceQuotaStatus{Hard: limit, Used: clustertest.List(key, "0")}})
}

// Of several jobs each is judged after those before it: what takes room, quota or a place in a queue is not there any more. What
// does not start takes none.
func TestFitSeveral(t *testing.T) {
	kueue := func(nominal string) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.S.Server.Resources = append(c.S.Server.Resources, "localqueues.kueue.x-k8s.io/v1beta2")
			c.LocalQueue("research", "cq")
			c.Flavor("f", "", "")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: nominal})
		}
	}
	volcano := func(c *clustertest.Cluster) {
		c.Queue("research", "Open", map[string]any{"nvidia.com/gpu": "16"})
	}
	large := strings.Replace(jobsOf("large"), "replicas: 2", "replicas: 9", 1)
	tests := []struct {
		name, text, flags string
		nodes             int
		build             func(*clustertest.Cluster)
		code              failure.Code
		first             []string // of each answer, what the first line begins with
	}{
		{"room for both", jobsOf("a", "b"), "", 4, nil, 0, []string{"FITS_NOW  a: ", "FITS_NOW  b: fits now: room for all 2 members on n3, n4"}},
		{"room for one", jobsOf("a", "b"), "", 3, nil, 3, []string{"FITS_NOW  a: ", "WAITING  8 of 24 GPUs free on the 3 nodes that b may use", "  TFJob team/a holds 16 GPUs on n1, n2"}},
		{"one that is too large takes none", large + "---\n" + jobsOf("b"), "", 2, nil, 6, []string{"BLOCKED  large", "FITS_NOW  b: "}},
		{"quota for one", jobsOf("a", "b"), "", 4, func(c *clustertest.Cluster) { gpusIn(c, "16") }, 3, []string{"FITS_NOW  a: ", "WAITING  b: quota q of namespace team is used up: 16 of 16 GPUs used"}},
		{"a quota of jobs for one", jobsOf("a", "b"), "", 4, func(c *clustertest.Cluster) { quotaOf(c, "count/tfjobs.kubeflow.org", "1") }, 5, []string{"FITS_NOW  a: ", "BLOCKED  b: quota q of namespace team"}},
		{"a quota of jobs for one, which waits", jobsOf("a", "b"), "", 0, func(c *clustertest.Cluster) { quotaOf(c, "count/tfjobs.kubeflow.org", "1") }, 6, []string{"BLOCKED  a: ", "BLOCKED  b: quota q of namespace team"}},
		{"a quota of jobs for both", jobsOf("a", "b"), "", 4, func(c *clustertest.Cluster) { quotaOf(c, "count/tfjobs.kubeflow.org", "2") }, 0, []string{"FITS_NOW  a: ", "FITS_NOW  b: "}},
		{"a quota of PodGroups for one", jobsOf("a", "b"), "", 4, func(c *clustertest.Cluster) { quotaOf(c, "count/podgroups.scheduling.x-k8s.io", "1") }, 3, []string{"FITS_NOW  a: ", "WAITING  b: quota q of namespace team"}},
		{"a quota of Services for one", jobsOf("a", "b"), "", 4, func(c *clustertest.Cluster) { quotaOf(c, "services", "3") }, 3, []string{"FITS_NOW  a: ", "WAITING  b: quota q of namespace team"}},
		{"a queue of Kueue for one", jobsOf("a", "b"), "--queue research --dialect scheduler-plugins", 4, kueue("16"), 3, []string{"FITS_NOW  a: ", "WAITING  b: Kueue holds it: ClusterQueue cq has 0 of 16 GPUs left"}},
		{"a queue of Kueue for both", jobsOf("a", "b"), "--queue research --dialect scheduler-plugins", 4, kueue("32"), 0, []string{"FITS_NOW  a: ", "FITS_NOW  b: "}},
		{"a queue of Volcano for one", jobsOf("a", "b"), "--queue research --dialect volcano", 4, volcano, 3, []string{"FITS_NOW  a: ", "WAITING  b: queue research has 0 of 16 GPUs left"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := nodesOf8(tt.nodes)
			if tt.build != nil {
				tt.build(c)
			}
			out, failed := inTeam(t, c, tt.text, strings.Fields(tt.flags)...)
			if code(failed) != tt.code {
				t.Errorf("exit code %d: %v", code(failed), failed)
			}
			rest := "\n" + out
			for _, want := range tt.first {
				_, after, found := strings.Cut(rest, "\n"+want)
				if !found {
					t.Fatalf("no %q in order in\n%s", want, out)
				}
				rest = after
			}
		})
	}
}

func code(f *failure.Error) failure.Code {
	if f == nil {
		return failure.CodeOK
	}
	return f.Code
}

// For programs it is a list, as that of why-pending; one job alone is no list.
func TestFitSeveralJSON(t *testing.T) {
	out, failed := inTeam(t, nodesOf8(3), jobsOf("a", "b"), "-o", "json")
	var list struct {
		APIVersion, Kind string
		Items            []struct {
			Job     struct{ Name string }
			Verdict string
			Exit    int
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || code(failed) != 3 || list.Kind != "List" || list.APIVersion != "gangctl.why/v1" || len(list.Items) != 2 {
		t.Fatalf("%v %v\n%s", err, failed, out)
	}
	if a, b := list.Items[0], list.Items[1]; a.Job.Name != "a" || a.Verdict != "FITS_NOW" || a.Exit != 0 || b.Job.Name != "b" || b.Exit != 3 {
		t.Errorf("got %+v", list.Items)
	}
}

const accountFile = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: trainer}\n"

// What the file has besides the jobs is there when they are.
func TestFitWithOtherObjects(t *testing.T) {
	claim := "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteMany], storageClassName: late, resources: {requests: {storage: 1Gi}}}\n"
	job := strings.Replace(jobFile, "          containers: [{", "          volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n          containers: [{", 1)
	job = strings.Replace(job, "replicas: 2", "replicas: 1", 1)
	for text, want := range map[string]string{job: "BLOCKED  llama: PersistentVolumeClaim data does not exist", job + claim: "FITS_NOW  llama"} {
		late := storagev1.VolumeBindingWaitForFirstConsumer
		c := nodesOf8(2).Put(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "example.com/disks", VolumeBindingMode: &late})
		if out, _ := inTeam(t, c, text); !strings.HasPrefix(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	// The API server does not know of it, and refuses pods that name it.
	account := strings.Replace(jobFile, "          containers: [{", "          serviceAccountName: trainer\n          containers: [{", 1)
	for text, want := range map[string]string{account: `BLOCKED  llama: ServiceAccount "trainer" does not exist`, account + accountFile: "FITS_NOW  llama"} {
		l := kubetest.Serve(t, nodesOf8(2).Done())
		for _, path := range []string{jobsPath, groupsPath} {
			l.Answer("POST "+path, 201, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}})
		}
		l.Refuse("POST "+podsPath, 403, metav1.StatusReasonForbidden, `pods "llama-worker-0" is forbidden: error looking up service account research/trainer: serviceaccount "trainer" not found`, nil)
		if out, _, _ := typeLine(t.Context(), l.Client, "", "submit", "-f", file(t, text), "--dry-run=fit", "--scheduler", "gang"); !strings.HasPrefix(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
