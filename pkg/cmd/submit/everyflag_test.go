package submit

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/golden"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// flagValues are arguments for every flag of a kind that changes what is submitted, each with what it needs to have an effect. The
// numbers are none that a template, or another flag, comes to as well.
func flagValues(kind string) map[string][]string {
	all := map[string][]string{
		"name": {"--name", "bert"}, "image": {"--image", "other:2"}, "workers": {"--workers", "5"}, "ps": {"--ps", "1"}, "chief": {"--chief", "1"},
		"evaluator": {"--evaluator", "1"}, "gpus": {"--gpus", "3"}, "cpu": {"--cpu", "4"}, "memory": {"--memory", "8Gi"}, "ephemeral-storage": {"--ephemeral-storage", "50Gi"},
		"gpu-resource": {"--gpu-resource", "amd.com/gpu", "--gpus", "1"}, "env": {"--env", `Q=a"b, c: d # e`}, "working-dir": {"--working-dir", "/work"},
		"scheduler": {"--scheduler", "mine"}, "min-available": {"--min-available", "2", "--workers", "3"}, "dialect": {"--dialect", "labels"}, "queue": {"--queue", "fast", "--dialect", "volcano"},
		"priority-class": {"--priority-class", "high"}, "restart-policy": {"--restart-policy", "Never"}, "clean-pod-policy": {"--clean-pod-policy", "All"},
		"label": {"--label", "team=vision"}, "annotation": {"--annotation", "note=a b"},
		"limit-cpu": {"--limit-cpu", "8"}, "limit-memory": {"--limit-memory", "16Gi"}, "device": {"--device", "example.com/fpga=2"}, "rdma": {"--rdma"},
		"env-from": {"--env-from", "secret/keys", "--env-from", "configmap/settings"}, "data": {"--data", "imagenet:/data:ro:train", "--data", "out:/out"},
		"host-path": {"--host-path", "/mnt/nvme:/scratch"}, "config-file": {"--config-file", "testdata/train.ini:/etc/train.ini"}, "shm": {"--shm", "2Gi"},
		"sync-git": {"--sync-git", "https://example.com/team/train@v1.2"}, "sync-image": {"--sync-image", "git:1", "--sync-git", "https://example.com/team/train"},
		"shell": {"--shell"}, "node-selector": {"--node-selector", "pool=gpu"}, "toleration": {"--toleration", "nvidia.com/gpu=present:NoSchedule", "--toleration", "spot"},
		"affinity-node": {"--affinity-node", "model in (a100,h100),!spot"}, "affinity-policy": {"--affinity-policy", "spread"},
		"affinity-constraint": {"--affinity-constraint", "required", "--affinity-policy", "pack"}, "affinity-domain": {"--affinity-domain", "rack", "--affinity-policy", "spread"},
		"topology": {"--topology", "topology.kubernetes.io/zone"}, "topology-preferred": {"--topology-preferred", "rack,topology.kubernetes.io/zone"}, "host-network": {"--host-network"}, "image-pull-secret": {"--image-pull-secret", "registry"},
		"image-pull-policy": {"--image-pull-policy", "Always"}, "service-account": {"--service-account", "trainer"}, "retries": {"--retries", "3"},
		"set": {"--set", "spec.runPolicy.suspend=true"}, "template": {"--template", "testdata/template.yaml"},
		"time-limit": {"--time-limit", "12h"}, "ttl": {"--ttl", "24h"}, "tensorboard": {"--tensorboard", "s3://logs/llama"},
		"tensorboard-image": {"--tensorboard-image", "tb:1", "--tensorboard", "s3://logs/llama"},
		"slots-per-worker":  {"--slots-per-worker", "7"}, "framework": {"--framework", "torch"}, "nproc-per-node": {"--nproc-per-node", "4"},
		"chief-image": {"--chief-image", "c:1", "--chief", "1"}, "chief-gpus": {"--chief-gpus", "1", "--chief", "1"}, "chief-cpu": {"--chief-cpu", "1", "--chief", "1"}, "chief-memory": {"--chief-memory", "1Gi", "--chief", "1"},
		"chief-ephemeral-storage": {"--chief-ephemeral-storage", "20Gi", "--chief", "1"},
		"ps-image":                {"--ps-image", "p:1", "--ps", "1"}, "ps-gpus": {"--ps-gpus", "1", "--ps", "1"}, "ps-cpu": {"--ps-cpu", "1", "--ps", "1"}, "ps-memory": {"--ps-memory", "1Gi", "--ps", "1"},
		"ps-ephemeral-storage": {"--ps-ephemeral-storage", "20Gi", "--ps", "1"},
		"worker-image":         {"--worker-image", "w:1"}, "worker-gpus": {"--worker-gpus", "1"}, "worker-cpu": {"--worker-cpu", "1"}, "worker-memory": {"--worker-memory", "1Gi"},
		"worker-ephemeral-storage": {"--worker-ephemeral-storage", "20Gi"},
		"evaluator-image":          {"--evaluator-image", "e:1", "--evaluator", "1"}, "evaluator-gpus": {"--evaluator-gpus", "1", "--evaluator", "1"}, "evaluator-cpu": {"--evaluator-cpu", "1", "--evaluator", "1"}, "evaluator-memory": {"--evaluator-memory", "1Gi", "--evaluator", "1"},
		"evaluator-ephemeral-storage": {"--evaluator-ephemeral-storage", "20Gi", "--evaluator", "1"},
		"launcher-image":              {"--launcher-image", "l:1"}, "launcher-gpus": {"--launcher-gpus", "1"}, "launcher-cpu": {"--launcher-cpu", "1"}, "launcher-memory": {"--launcher-memory", "1Gi"},
		"launcher-ephemeral-storage": {"--launcher-ephemeral-storage", "20Gi"},
		"master-image":               {"--master-image", "m:1"}, "master-gpus": {"--master-gpus", "1"}, "master-cpu": {"--master-cpu", "1"}, "master-memory": {"--master-memory", "1Gi"},
		"master-ephemeral-storage": {"--master-ephemeral-storage", "20Gi"},
	}
	if kind != "tf" {
		all["template"] = []string{"--template", "testdata/template-" + kind + ".yaml"}
	}
	for _, what := range append(resize.FlagRequests(), "image") {
		all["head-"+what] = []string{"--head-" + what, strings.TrimPrefix(all["launcher-"+what][1], "l:")}
	}
	if kind == "ray" {
		all["set"] = []string{"--set", "spec.suspend=true"}
	}
	if kind == "job" { // which has other fields, and where only one framework has processes
		all["set"] = []string{"--set", "spec.suspend=true"}
		all["nproc-per-node"] = append(all["nproc-per-node"], "--framework", "torch")
	}
	return all
}

// others are the flags about what to do with the objects rather than what they are.
func others() []string {
	return []string{"filename", "dry-run", "from", "wait", "timeout", "output", "show-managed-fields", "allow-missing-template-keys", "no-headers", "sort-by", "help", "follow"}
}

// shown is what a command line makes, without the line that is kept on the job; or the error.
func shown(t testing.TB, kind string, args ...string) (string, error) {
	t.Helper()
	line := append([]string{"submit", kind, "--dry-run=client", "-o", "yaml"}, args...)
	if !slices.Contains(args, "--name") {
		line = append(line, "--name", "llama")
	}
	if !slices.Contains(args, "--image") {
		line = append(line, "--image", "i:1")
	}
	out, _, failed := typeLine(t.Context(), noCluster, "", append(line, "--", "python", "train.py")...)
	if failed != nil {
		return "", failed
	}
	var kept []string
	skip := false
	for line := range strings.Lines(out) {
		if skip = strings.Contains(line, "gangctl.dev/command:") || skip && strings.HasPrefix(line, "      "); !skip {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, ""), nil
}

// flagsOf are the flags of a kind's command.
func flagsOf(t testing.TB, kind string) []string {
	t.Helper()
	streams, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(clustertest.Now))
	var names []string
	for _, k := range kinds() {
		if k.name != kind {
			continue
		}
		newKindCommand(&cmdutil.Factory{IO: streams, Suffix: func() string { return "abcde" }}, k, nil).Flags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains(others(), f.Name) {
				names = append(names, f.Name)
			}
		})
	}
	return names
}

// Every flag of every kind changes what is submitted, and what it makes is kept under testdata.
func TestEveryFlag(t *testing.T) {
	for _, k := range kinds() {
		all := flagValues(k.name)
		bare, err := shown(t, k.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range flagsOf(t, k.name) {
			t.Run(k.name+"/"+name, func(t *testing.T) {
				args, ok := all[name]
				if !ok {
					t.Fatalf("no test says what --%s is good for", name)
				}
				got, err := shown(t, k.name, args...)
				if err != nil {
					t.Fatal(err)
				}
				if got == bare {
					t.Error("it changes nothing")
				}
				if k.name != "tf" {
					return // the same flag means the same; that it acts is what counts
				}
				golden.Compare(t, filepath.Join("testdata", "flag", name+".yaml"), got)
			})
		}
	}
}

// However many flags there are already, one more changes the object, or is refused.
func TestFlagsTogether(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in every run
	for _, k := range kinds() {
		all, names := flagValues(k.name), flagsOf(t, k.name)
		for range 60 {
			var args []string
			used := map[string]bool{}
			pick := func() (string, []string) {
				name := names[random.IntN(len(names))]
				more := all[name]
				for i := 0; i < len(more); i++ {
					if strings.HasPrefix(more[i], "--") && used[more[i]] {
						return "", nil // a value that is given twice: the last one counts
					}
				}
				for _, arg := range more {
					used[arg] = used[arg] || strings.HasPrefix(arg, "--")
				}
				return name, more
			}
			for range random.IntN(8) {
				_, more := pick()
				args = append(args, more...)
			}
			name, more := pick()
			if name == "" {
				continue
			}
			before, err := shown(t, k.name, args...)
			if err != nil {
				continue // they contradict each other already
			}
			after, err := shown(t, k.name, append(slices.Clone(args), more...)...)
			if err == nil && after == before && !overruled(name, args) {
				t.Errorf("%s: %q changes nothing after %q", k.name, more, args)
			}
		}
	}
}

// overruled reports whether a flag for all is hidden behind those for each: the job has one role with members, and those set it.
func overruled(name string, args []string) bool {
	return slices.Contains(append(resize.FlagRequests(), "image"), name) && slices.ContainsFunc(args, func(w string) bool { return strings.HasSuffix(w, "-"+name) })
}

// What people type into free text arrives as it is, and breaks nothing.
func FuzzValues(f *testing.F) {
	f.Add("A", `a"b: c # d`, "vision", "python", "llama")
	f.Add("A", "$(B) $$ \n\t", "", "'", "a-b")
	f.Add("x y", "{{.}}", "ü", "--", "1")
	f.Add("A", "", "", "\xc3\xfc", "a") // is no text
	f.Fuzz(func(t *testing.T, name, value, label, arg, job string) {
		line := []string{"submit", "tf", "--name=" + job, "--image", "i", "--dry-run=client", "-o", "yaml", "--env", name + "=" + value, "--label", "team=" + label, "--", "run", arg}
		out, _, failed := typeLine(t.Context(), noCluster, "", line...)
		if failed != nil {
			return
		}
		rendered, group := rendered(t, out)
		template := at(t, rendered, "spec", "tfReplicaSpecs", "Worker", "template").(map[string]any)
		c := at(t, template, "spec").(map[string]any)["containers"].([]any)[0].(map[string]any)
		// What the kubelet makes of it.
		read := func(v any) string { return expansion.Expand(v.(string), func(string) string { return "replaced" }) }
		env := c["env"].([]any)[0].(map[string]any)
		set, _ := env["value"].(string)
		if env["name"] != name || read(set) != value || read(c["command"].([]any)[1]) != arg {
			t.Errorf("%q=%q %q became %v %v", name, value, arg, env, c["command"])
		}
		labels := maps.Clone(at(t, template, "metadata", "labels").(map[string]any))
		if labels["team"] != label || at(t, rendered, "metadata", "name") != job || at(t, group, "metadata", "name") != job {
			t.Errorf("%q %q became %v", label, job, labels)
		}
	})
}
