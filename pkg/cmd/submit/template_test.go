package submit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/internal/golden"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/templates"
)

// fromTemplate is what flags make of a template; no command is typed.
func fromTemplate(t *testing.T, args ...string) (map[string]any, string, error) {
	t.Helper()
	line := append([]string{"submit", "tf", "llama", "--dry-run=client", "-o", "yaml"}, args...)
	out, _, failed := typeLine(t.Context(), noCluster, "", line...)
	if failed != nil {
		return nil, "", failed
	}
	job, _ := rendered(t, out)
	return job, out, nil
}

// Every built-in template is a gang without further flags, and has a description.
func TestBuiltInTemplates(t *testing.T) {
	for name, text := range templates.Jobs() {
		t.Run(name, func(t *testing.T) {
			if (template{text: text}).purpose() == "" {
				t.Error("it does not say what it is for")
			}
			_, out, err := fromTemplate(t, "--template", name)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", "template", name+".yaml"), out)
		})
	}
}

// What a template sets stays, unless a flag sets it.
func TestTemplateAndFlags(t *testing.T) {
	const ours = "testdata/template.yaml"
	tests := map[string]struct {
		args       []string
		have, lack []string
	}{
		"as it is": {nil, []string{"replicas: 3", "image: ours:1", "- $(DATA)", "cleanPodPolicy: All", "backoffLimit: 5", "restartPolicy: ExitCode", "cpu: \"2\"", "cpu: \"4\"",
			"nvidia.com/gpu: \"2\"", "minAvailable: 3", "team: vision", "name: llama", "mountPath: /scratch"}, []string{"name: ours", "ps:", "PS:"}},
		"counts":    {[]string{"--workers", "5", "--ps", "1", "--ps-image", "p:1"}, []string{"replicas: 5", "PS:", "image: p:1", "minAvailable: 6", "restartPolicy: OnFailure"}, []string{"replicas: 3"}},
		"resources": {[]string{"--cpu", "8", "--gpus", "4"}, []string{"cpu: \"8\"", "nvidia.com/gpu: \"4\""}, []string{"cpu: \"2\"", "cpu: \"4\""}},
		"no GPUs":   {[]string{"--gpus", "0"}, []string{"cpu: \"4\""}, []string{"nvidia.com/gpu"}},
		"a command": {[]string{"--image", "other:2", "--env", "DATA=/other", "--", "python", "x.py"}, []string{"image: other:2", "- x.py", "value: /other"}, []string{"$(DATA)", "value: /data", "args:"}},
		"policies":  {[]string{"--restart-policy", "Never", "--clean-pod-policy", "None", "--min-available", "2"}, []string{"restartPolicy: Never", "cleanPodPolicy: None", "minAvailable: 2"}, []string{"ExitCode"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, out, err := fromTemplate(t, append([]string{"--template", ours}, tt.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range tt.have {
				if !strings.Contains(out, part) {
					t.Errorf("no %q in:\n%s", part, out)
				}
			}
			for _, part := range tt.lack {
				if strings.Contains(out, part) {
					t.Errorf("%q in:\n%s", part, out)
				}
			}
		})
	}
}

func TestTemplateRefusals(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte(strings.Replace(jobFile, "Worker:", "Helper:", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	slip := filepath.Join(t.TempDir(), "slip.yaml")
	if err := os.WriteFile(slip, []byte(strings.Replace(jobFile, "image: i", "imag: i", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`--template "all-reduse": there is no template of this name`: {"--template", "all-reduse"},
		"read the template: open absent.yaml":                        {"--template", "absent.yaml"},
		"is a PyTorchJob, not a TFJob":                               {"--template", "testdata/template-pytorch.yaml"},
		"spec.tfReplicaSpecs.Helper: unknown role":                   {"--template", broken, "--image", "i"},
		`json: unknown field "imag"`:                                 {"--template", slip, "--image", "i"},
		"--template is empty":                                        {"--template="},
		"--set spec.tfReplicaSpecs.Worker.replcas: there is no such field; did you mean replicas?":                       {"--image", "i", "--set", "spec.tfReplicaSpecs.Worker.replcas=2"},
		"--set spec.tfReplicaSpecs.Worker.replicas: the number of members has flags of its own":                          {"--image", "i", "--set", "spec.tfReplicaSpecs.Worker.template.spec.terminationGracePeriodSeconds=60", "--set", "spec.tfReplicaSpecs.Worker.replicas=2"},
		"--set spec.tfReplicaSpecs.Worker.template.spec.schedulerName: the scheduler has a flag of its own, --scheduler": {"--image", "i", "--set", "spec.tfReplicaSpecs.Worker.template.spec.schedulerName=x"},
		"--set status.x": {"--image", "i", "--set", "status.x=1"},
		"--set spec.runPolicy.schedulingPolicy.minAvailable: the minimum has a flag of its own, --min-available": {"--image", "i", "--set", "spec.runPolicy.schedulingPolicy.minAvailable=7"},
		"pod-group: the group reference of pods has a flag of its own, --dialect":                                {"--image", "i", "--set", `spec.tfReplicaSpecs.Worker.template.metadata.labels.scheduling\.x-k8s\.io/pod-group=x`},
	} {
		_, _, err := fromTemplate(t, args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got  %v\nwant %s", args, err, want)
		}
	}
}

// The gang counts what --set has its members request.
func TestSetCounts(t *testing.T) {
	_, out, err := fromTemplate(t, "--image", "i", "--workers", "3", "--set", "spec.tfReplicaSpecs.Worker.template.spec.containers[0].resources.limits.cpu=2",
		"--set", "spec.tfReplicaSpecs.Worker.template.spec.terminationGracePeriodSeconds=60")
	if err != nil || strings.Count(out, `cpu: "6"`) != 2 || !strings.Contains(out, "terminationGracePeriodSeconds: 60") {
		t.Errorf("got %v\n%s", err, out)
	}
}

// A user's own template hides the built-in one of its name.
func TestTemplatesCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "templates"), 0o700); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, "templates", "all-reduce.yaml")
	if err := os.WriteFile(mine, []byte("# Ours.\n"+jobFile), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := templatesIn(filepath.Join(dir, "config.yaml"))
	if err != nil || len(all) != len(templates.Jobs()) || all["all-reduce"].path != mine || all["all-reduce"].purpose() != "Ours." || all["parameter-server"].kind() != "TFJob" {
		t.Errorf("got %v, %v", all, err)
	}
	out, _, failed := typeLine(t.Context(), noCluster, "", "submit", "templates", "list")
	if failed != nil || !strings.Contains(out, "all-reduce") || !strings.Contains(out, "built in") {
		t.Errorf("got %v, %s", failed, out)
	}
	out, _, failed = typeLine(t.Context(), noCluster, "", "submit", "templates", "show", "chief-evaluator")
	if failed != nil || out != string(templates.Jobs()["chief-evaluator"]) {
		t.Errorf("got %v, %s", failed, out)
	}
	for _, args := range [][]string{{"submit", "templates", "shw"}, {"submit", "templates", "list", "x"}, {"submit", "templates", "show"}, {"submit", "templates", "show", "absent"}} {
		if _, _, failed := typeLine(t.Context(), noCluster, "", args...); failed == nil || failed.Code != 2 {
			t.Errorf("%q: got %v", args, failed)
		}
	}
}

// Templates complete --template, those of the kind; where none begins like that, files do.
func TestCompleteTemplates(t *testing.T) {
	complete := CompleteTemplates(&cmdutil.Factory{ConfigPath: filepath.Join(t.TempDir(), "config.yaml")})
	for _, tt := range []struct {
		command, prefix string
		want            []string
		directive       cobra.ShellCompDirective
	}{
		{"show", "a", []string{"all-reduce"}, cobra.ShellCompDirectiveNoFileComp},
		{"tf", "a", []string{"all-reduce"}, cobra.ShellCompDirectiveNoFileComp},
		{"mpi", "a", nil, cobra.ShellCompDirectiveDefault},
		{"tf", "./a", nil, cobra.ShellCompDirectiveDefault},
	} {
		got, directive := complete(&cobra.Command{Use: tt.command}, nil, tt.prefix)
		if !slices.Equal(got, tt.want) || directive != tt.directive {
			t.Errorf("%+v: got %q, %v", tt, got, directive)
		}
	}
}
