package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
)

// TestOtherOperators submits to what others ship, as they ship it: the MPI Operator, and the queues of Kueue. They are modules that
// the tests do not depend on; see the target other-operators of the Makefile.
func TestOtherOperators(t *testing.T) {
	program, mpi, kueue := os.Getenv("GANGCTL_MPI_OPERATOR"), os.Getenv("GANGCTL_MPI_OPERATOR_MODULE"), os.Getenv("GANGCTL_KUEUE_MODULE")
	if program == "" || mpi == "" || kueue == "" {
		t.Skip("needs GANGCTL_MPI_OPERATOR, GANGCTL_MPI_OPERATOR_MODULE and GANGCTL_KUEUE_MODULE")
	}
	// A cluster of its own: other operators run in it.
	c := newCluster(t, "--nodes=2", "--cpu=16", "--gpus=8", "--run-for=2s", "--operator=false")
	t.Run("MPIJob v2beta1", func(t *testing.T) {
		c.undefine(t, submittedKinds()[2].resource) // the Training Operator's, which serves v1
		eventually(t, "the other MPIJobs are gone", func(ctx context.Context) bool {
			_, err := c.dynamic.Resource(definitions).Get(ctx, "mpijobs.kubeflow.org", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		c.applyFiles(t, filepath.Join(mpi, "manifests", "base", "kubeflow.org_mpijobs.yaml"))
		c.startMPIOperator(t, program)
		k := submittedKinds()[2]
		k.resource.Version = "v2beta1"
		stdout, _ := c.submit(t, k.line("dry", "1", "--dry-run=server", "-o", "yaml")...)
		if !strings.Contains(stdout, "apiVersion: kubeflow.org/v2beta1\n") {
			t.Errorf("not in the version of the MPI Operator:\n%s", stdout)
		}
		c.waitsWhole(t, k)
		c.runsToTheEnd(t, k)
	})
	t.Run("queues of Kueue", func(t *testing.T) {
		paths, err := filepath.Glob(filepath.Join(kueue, "config", "components", "crd", "bases", "*.yaml"))
		must(t, err)
		c.applyFiles(t, paths...)
		c.makeQueue(t, "16")
		for workers, want := range map[string]struct {
			code     int
			wantText string
		}{"2": {0, "FITS_NOW"}, "3": {6, "Kueue can never admit it: ClusterQueue cq allows 16 GPUs in all"}} {
			stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "fit", "job", "--workers", workers, "--gpus", "8", "--queue", "research")
			if code != want.code || !strings.Contains(stdout, want.wantText) {
				t.Errorf("%s workers: exit code %d\n%s%s", workers, code, stdout, stderr)
			}
		}
		// No controller suspends what waits in a queue: without Kueue's controller it would start at once.
		_, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "job", "queued", "--image", "x", "--queue", "research")
		if code != 1 || !strings.Contains(stderr, "Kueue does not manage a Job here") {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
	})
}

// applyFiles applies definitions, and waits until they are served.
func (c *cluster) applyFiles(t *testing.T, paths ...string) {
	t.Helper()
	if len(paths) == 0 {
		t.Fatal("there are no definitions")
	}
	applier := &sandboxmanifest.Applier{Client: c.dynamic}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		must(t, err)
		must(t, applier.Apply(t.Context(), data))
		must(t, applier.WaitEstablished(t.Context(), data))
	}
}

// startMPIOperator runs it until the test ends.
func (c *cluster) startMPIOperator(t *testing.T, program string) {
	t.Helper()
	c.home(t, "mpi-operator") // where its lease is
	c.background(t, program, "-kubeConfig", c.Kubeconfig, "-kube-api-qps", "100", "-kube-api-burst", "200")
}

// makeQueue makes a LocalQueue research with so many GPUs.
func (c *cluster) makeQueue(t *testing.T, gpus string) {
	t.Helper()
	flavors := []any{map[string]any{"name": "any", "resources": []any{map[string]any{"name": "nvidia.com/gpu", "nominalQuota": gpus}}}}
	for _, object := range []struct {
		resource, kind, namespace, name string
		spec                            map[string]any
	}{
		{"resourceflavors", "ResourceFlavor", "", "any", map[string]any{}},
		{"clusterqueues", "ClusterQueue", "", "cq", map[string]any{"namespaceSelector": map[string]any{},
			"resourceGroups": []any{map[string]any{"coveredResources": []any{"nvidia.com/gpu"}, "flavors": flavors}}}},
		{"localqueues", "LocalQueue", space, "research", map[string]any{"clusterQueue": "cq"}},
	} {
		gvr := kueueResource(object.resource)
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": gvr.GroupVersion().String(), "kind": object.kind,
			"metadata": map[string]any{"name": object.name}, "spec": object.spec}}
		eventually(t, object.kind+" is made", func(ctx context.Context) bool {
			_, err := c.dynamic.Resource(gvr).Namespace(object.namespace).Create(ctx, u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Log(err)
			}
			return err == nil
		})
	}
}
