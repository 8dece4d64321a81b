package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
)

// raySamples submits what KubeRay itself publishes, unedited: what has a RayJob or RayCluster in it becomes a gang, or is refused with the
// reason.
func (c *cluster) raySamples(t *testing.T, dir string) {
	kinds := regexp.MustCompile(`(?m)^kind: (` + ray.JobKind + `|` + ray.ClusterKind + `)\s*$`)
	gangs, left, refused := 0, 0, 0
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !kinds.Match(data) {
			return err
		}
		stdout, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "-f", path, "--dry-run=client", "-o", "yaml")
		name := strings.TrimPrefix(path, dir+"/")
		switch {
		case code != 0 && strings.HasPrefix(stderr, "error: "):
			refused++
			t.Logf("%s is refused: %s", name, strings.TrimSpace(stderr))
		case code == 0 && strings.Contains(stderr, "leaves the gang to kuberay-operator"):
			left++
			t.Logf("%s is left to the operator", name)
		case code == 0 && strings.Contains(stdout, "kind: PodGroup"):
			gangs++
		default:
			t.Errorf("%s is neither a gang nor refused: exit code %d\n%s", name, code, stderr)
		}
		return nil
	}))
	t.Logf("%d samples are gangs, %d are left to the operator, %d are refused", gangs, left, refused)
	if all := gangs + left + refused; all == 0 || refused*20 > all {
		t.Errorf("of %d samples %d are refused", all, refused)
	}
}
