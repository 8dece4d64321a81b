package addon

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

func TestSelect(t *testing.T) {
	for _, tt := range []struct{ list, want string }{
		{"", ""},
		{"jobset", "jobset"},
		{"trainer", "jobset,trainer"}, // which makes JobSets
		{" kueue, jobset,,jobset", "jobset,kueue"},
		{"kueue,ray,lws,trainer", "jobset,trainer,lws,ray,kueue"},
	} {
		got, err := Select(tt.list)
		if err != nil || got != tt.want {
			t.Errorf("%q: got %q, %v", tt.list, got, err)
		}
		if again, err := Select(got); err != nil || again != got {
			t.Errorf("%q: again %q, %v", got, again, err)
		}
		var chosen []string
		for _, c := range Chosen(got) {
			chosen = append(chosen, c.Name)
		}
		if strings.Join(chosen, ",") != got {
			t.Errorf("%q: chosen are %v", got, chosen)
		}
	}
	_, err := Select("jobset,jobsets")
	var f *failure.Error
	if !errors.As(err, &f) || f.Code != failure.CodeUsage || f.Message != `--with "jobsets": there is no controller of that name` ||
		f.Hint != "did you mean jobset? those that `make controllers` builds are jobset, trainer, lws, ray, kueue" {
		t.Errorf("got %+v", f)
	}
}

// Each entry of the table is complete: a place that it names is filled in, it listens on this machine only, and what it needs comes before it.
func TestTable(t *testing.T) {
	p := Place{Home: "/home of/it", Kubeconfig: "/kubeconfig", WebhookPort: 1001, ProbePort: 1002}
	seen := map[string]bool{}
	for _, c := range All() {
		for _, need := range c.Needs {
			if !seen[need] {
				t.Errorf("%s comes before %s, which it needs", c.Name, need)
			}
		}
		seen[c.Name] = true
		args := c.Args("/kinds", p)
		text := strings.Join(args, "\n") + "\n" + c.Configuration(p)
		if args[0] != "/home of/it" || args[1] != "/kinds/"+c.Name || !slices.Contains(args, "--kubeconfig=/kubeconfig") {
			t.Errorf("%s: got %q", c.Name, args)
		}
		for _, place := range []string{"{probe}", "{webhook}", "{certificates}", "{config}", "{kubeconfig}"} {
			if strings.Contains(text, place) {
				t.Errorf("%s: %s is left in\n%s", c.Name, place, text)
			}
		}
		if !strings.Contains(text, "127.0.0.1:1002") || slices.Contains(args, "--config="+p.Config()) != (c.Configuration(p) != "") {
			t.Errorf("%s: got\n%s", c.Name, text)
		}
		if c.Namespace == "" || c.Account == "" || (c.Service == "") != (c.Secret == "") {
			t.Errorf("%s: %+v", c.Name, c)
		}
		config := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(c.Configuration(p)), &config); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		webhook, _ := config["webhook"].(map[string]any)
		if c.Configuration(p) != "" && (webhook["host"] != "127.0.0.1" || webhook["port"] != float64(1001)) {
			t.Errorf("%s: webhooks are at %v", c.Name, webhook)
		}
		if dir, ok := webhook["certDir"]; ok && dir != p.Certificates() {
			t.Errorf("%s: certificates are in %v", c.Name, dir)
		}
	}
}

// folder returns a folder of controllers with these files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		mode := os.FileMode(0o600)
		if !strings.HasSuffix(name, ".yaml") && text != "no program" {
			mode = 0o700
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRequire(t *testing.T) {
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: jobset-system}\n"
	for _, tt := range []struct {
		name          string
		files         map[string]string
		message, hint string
	}{
		{"all there", map[string]string{"jobset": "x", "jobset.yaml": namespace}, "", ""},
		{"nothing", nil, "the program of the controller jobset: ", "build the controllers: make controllers; or name the folder that has them with --controllers"},
		{"no program", map[string]string{"jobset": "no program", "jobset.yaml": namespace}, "jobset is no program", "make controllers"},
		{"no manifest", map[string]string{"jobset": "x"}, "the manifest of the controller jobset: ", "build the controllers: make controllers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Chosen("jobset")[0].Require(folder(t, tt.files))
			if tt.message == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var f *failure.Error
			if !errors.As(err, &f) || !strings.Contains(f.Message, tt.message) || !strings.Contains(f.Hint, tt.hint) {
				t.Errorf("got %+v", f)
			}
		})
	}
}
