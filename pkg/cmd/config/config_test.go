package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/root"
)

// home is a settings file and an environment.
type home struct {
	t    *testing.T
	path string
	env  map[string]string
}

func newHome(t *testing.T, file string, env map[string]string) *home {
	t.Helper()
	h := &home{t: t, path: filepath.Join(t.TempDir(), "config.yaml"), env: env}
	if file != "" {
		if err := os.WriteFile(h.path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// run runs gangctl as a user does. FILE stands for the path of the settings file.
func (h *home) run(args string) (stdout, stderr string, code failure.Code) {
	h.t.Helper()
	io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	f := &cmdutil.Factory{IO: io, Args: strings.Fields(args), ConfigPath: h.path, Getenv: func(key string) string { return h.env[key] }}
	code = root.Execute(h.t.Context(), f, root.NewCommand(f))
	return strings.ReplaceAll(out.String(), h.path, "FILE"), strings.ReplaceAll(errOut.String(), h.path, "FILE"), code
}

// What is typed comes before the environment, that before the profile, and that before the rest of the file.
func TestPrecedence(t *testing.T) {
	const file = "image: file\nscheduler: file\nprofile: big\nprofiles: {big: {scheduler: profile}, small: {scheduler: tiny}}\n"
	for args, tt := range map[string]struct {
		env  map[string]string
		want []string
	}{
		"config view --show-origin":                 {nil, []string{`image +file +settings FILE: image`, `scheduler +profile +settings FILE: profile big: scheduler`}},
		"config view --show-origin --profile small": {nil, []string{`scheduler +tiny +settings FILE: profile small: scheduler`}},
		"config view  --show-origin":                {map[string]string{"GANGCTL_SCHEDULER": "env", "GANGCTL_PROFILE": "small"}, []string{`image +file +settings FILE: image`, `scheduler +env +GANGCTL_SCHEDULER`}},
		"config view --show-origin --color never":   {map[string]string{"GANGCTL_COLOR": "always"}, []string{`color +never +--color`}},
	} {
		stdout, stderr, code := newHome(t, file, tt.env).run(args)
		if code != failure.CodeOK || stderr != "" {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
		for _, line := range tt.want {
			if !regexp.MustCompile(`(?m)^` + line + ` *$`).MatchString(stdout) {
				t.Errorf("%s: no %s in\n%s", args, line, stdout)
			}
		}
	}
	// It is so when the value is used, too.
	for args, want := range map[string]string{"": "image: env", " --image flag": "image: flag"} {
		stdout, _, code := newHome(t, file, map[string]string{"GANGCTL_IMAGE": "env"}).run("submit tf a --dialect none --dry-run=client -o yaml -n x" + args)
		if code != failure.CodeOK || !strings.Contains(stdout, want) {
			t.Errorf("%q: exit code %d, no %s in\n%s", args, code, want, stdout)
		}
	}
}

// Every command warns of a key that is no flag, and reports which was probably meant; it works all the same.
func TestUnknownKey(t *testing.T) {
	for _, args := range []string{"config view", "submit tf a --image i --dialect none --dry-run=client -o name -n x"} {
		_, stderr, code := newHome(t, "imgae: x\nprofiles: {big: {wokers: 2}}\n", nil).run(args)
		if code != failure.CodeOK || !strings.Contains(stderr, `"imgae"`) || !strings.Contains(stderr, `"image"`) {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
	}
}

// After a key come the values that its flag has.
func TestCompleteValues(t *testing.T) {
	out, _, code := newHome(t, "", nil).run("__complete config set restart-policy On")
	if code != failure.CodeOK || !strings.HasPrefix(out, "OnFailure\n") {
		t.Errorf("exit code %d, got\n%s", code, out)
	}
}

func TestView(t *testing.T) {
	h := newHome(t, "image: i\ntoken: secret\nenv: [A=1, B=2]\n", nil)
	stdout, _, code := h.run("config view")
	if want := "env:\n    - A=1\n    - B=2\nimage: i\ntoken: REDACTED\n"; code != failure.CodeOK || stdout != want {
		t.Errorf("exit code %d, got\n%s", code, stdout)
	}
	stdout, _, code = h.run("config view -o json --show-origin")
	var a struct {
		APIVersion string `json:"apiVersion"`
		Settings   []struct{ Key, Origin string }
	}
	if err := json.Unmarshal([]byte(stdout), &a); err != nil || code != failure.CodeOK || a.APIVersion != "gangctl.config/v1" || len(a.Settings) != 3 || a.Settings[1].Origin != "settings FILE: image" {
		t.Errorf("%v, %+v", err, a)
	}
	if stdout, stderr, code := newHome(t, "", nil).run("config view"); stdout != "" || stderr != "nothing is set, neither in FILE nor in the environment\n" || code != failure.CodeOK {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

// What is set is there, is seen, and can be taken back; a profile is made by what is in it.
func TestEdit(t *testing.T) {
	h := newHome(t, "", nil)
	for _, step := range []struct{ args, file string }{
		{"config set image i", "image: i\n"},
		{"config set workers 4 --profile big", "image: i\nprofiles:\n  big:\n    workers: 4\n"},
		{"config use-profile big", "image: i\nprofiles:\n  big:\n    workers: 4\nprofile: big\n"},
		{"config unset image", "profiles:\n  big:\n    workers: 4\nprofile: big\n"},
	} {
		if _, stderr, code := h.run(step.args); code != failure.CodeOK {
			t.Fatalf("%s: exit code %d, %s", step.args, code, stderr)
		}
		got, err := os.ReadFile(h.path)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.ReplaceAll(string(got), "    ", "  "); strings.Join(strings.Fields(text), " ") != strings.Join(strings.Fields(step.file), " ") {
			t.Errorf("%s: got\n%s", step.args, got)
		}
	}
}

func TestRefusals(t *testing.T) {
	for args, want := range map[string]string{
		"config set imgae i":        `unknown key "imgae"`,
		"config set workers many":   "workers: ",
		"config set workers -1":     `workers: "-1": must be a whole number from `,
		"config set workers x -1":   "unknown shorthand flag: '1' in -1",
		"config set nothing -1":     `unknown key "nothing"`,
		"config set shell maybe":    `shell: "maybe": must be true or false`,
		"config set output wide":    `"output" cannot be set`,
		"config set file f":         `"file" cannot be set`,
		"config set overwrite true": `"overwrite" cannot be set`,
		"config use-profile nobody": "nobody",
		"config use-profile":        "config use-profile needs one name, got 0",
		"config unset image":        "image",
		"config view -o wide":       "--output",
	} {
		h := newHome(t, "profiles: {big: {workers: 1}}\n", nil)
		stdout, stderr, code := h.run(args)
		if code == failure.CodeOK || stdout != "" || !strings.HasPrefix(stderr, "error: ") || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q, %q", args, code, stdout, stderr)
		}
		if kept, err := os.ReadFile(h.path); err != nil || string(kept) != "profiles: {big: {workers: 1}}\n" {
			t.Errorf("%s: %v, the file is now\n%s", args, err, kept)
		}
	}
}

// What a command would refuse of a value, whatever else is typed, is refused when it is set, in the same sentence.
func TestSetRefusesWhatCommandsRefuse(t *testing.T) {
	for setting, want := range map[string]string{
		"gpu-resource gpu":         `--gpu-resource "gpu": must be an extended resource, DOMAIN/NAME`,
		"scheduler My_One":         `--scheduler "My_One": must hold only lower-case letters`,
		"request-timeout -- -1s":   `--request-timeout "-1s": must be a duration`,
		"queue X":                  `--queue "X": must hold only`,
		"env A=1 B":                `--env "B": must be NAME=VALUE`,
		"label a/b/c=d":            `--label "a/b/c=d": `,
		"data claim":               `--data "claim": there is no path`,
		"host-path a:/b":           `--host-path "a:/b": "a" is not an absolute path`,
		"config-file a:b":          `--config-file "a:b": "b" is not an absolute path`,
		"env-from x":               `--env-from "x": must be secret/NAME or configmap/NAME`,
		"node-selector x":          `--node-selector "x": must be KEY=VALUE`,
		"set spec.x":               `--set "spec.x": must be PATH=VALUE`,
		"set status.x=1":           `--set status.x`,
		"template resnt":           `--template "resnt": there is no template of this name`,
		"toleration a:b":           `--toleration "a:b": effect "b": must be`,
		"affinity-node a=":         "",
		"topology a/b/c":           `--topology "a/b/c": `,
		"topology-preferred a,":    `--topology-preferred "a,": `,
		"sync-git x":               `--sync-git "x": must be the URL of a repository`,
		"device gpu=x":             `--device "gpu=x": must be DOMAIN/NAME=COUNT`,
		"rdma x":                   `--rdma "x": must be an extended resource`,
		"image-pull-secret A":      `--image-pull-secret "A": must hold only`,
		"service-account A":        `--service-account "A": must hold only`,
		"selector !":               `--selector "!": `,
		"include (":                `--include "(": `,
		"tail -- -5":               `--tail -5: must be -1 or more`,
		"types Bad":                `--types "Bad": must be Normal or Warning`,
		"interval 1ms":             `--interval 1ms: must be 1s or more`,
		"source there":             `source: "there": must be one of auto, cluster, scheduler`,
		"namespace A_B":            `--namespace "A_B": `,
		"gpu-resource amd.com/gpu": "",
		"tensorboard /logs":        "", // with --data it has a meaning
		"data claim:/a":            "",
	} {
		h := newHome(t, "", nil)
		_, stderr, code := h.run("config set " + setting)
		if want == "" {
			if code != failure.CodeOK {
				t.Errorf("%s: exit code %d, %s", setting, code, stderr)
			}
			continue
		}
		if _, err := os.Stat(h.path); code != failure.CodeUsage || !strings.HasPrefix(stderr, "error: "+want) || err == nil {
			t.Errorf("%s: exit code %d, %s", setting, code, stderr)
		}
	}
}

// An error about a value that was not typed has where the value comes from.
func TestErrorsNameTheSetting(t *testing.T) {
	for name, tt := range map[string]struct {
		file, args string
		env        map[string]string
		want       string
	}{
		"environment": {env: map[string]string{"GANGCTL_GPU_RESOURCE": "gpu"}, args: "submit tf a --image i --dry-run=client",
			want: `error: GANGCTL_GPU_RESOURCE: --gpu-resource "gpu": must be an extended resource`},
		"file":    {file: "toleration: [a:b]\n", args: "submit tf a --image i --dry-run=client", want: `error: settings FILE: toleration: --toleration "a:b": effect`},
		"profile": {file: "profiles: {big: {selector: '!'}}\n", args: "list --profile big", want: `error: settings FILE: profile big: selector: --selector "!"`},
		"typed":   {env: map[string]string{"GANGCTL_GPU_RESOURCE": "gpu"}, args: "submit tf a --image i --dry-run=client --gpu-resource x", want: `error: --gpu-resource "x": must be`},
		"another": {env: map[string]string{"GANGCTL_SCHEDULER": "s"}, args: "submit tf a --image i --dry-run=client --gpu-resource x", want: `error: --gpu-resource "x": must be`},
		"kubeconfig": {env: map[string]string{"GANGCTL_KUBECONFIG": "/nowhere"}, args: "list",
			want: "error: kubeconfig /nowhere does not exist\nhint: name a kubeconfig with --kubeconfig or KUBECONFIG, or start a local cluster: gangctl-sandbox up\n--kubeconfig was not typed: it is set by GANGCTL_KUBECONFIG\n"},
	} {
		_, stderr, code := newHome(t, tt.file, tt.env).run(tt.args)
		if code == failure.CodeOK || !strings.HasPrefix(stderr, tt.want) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr)
		}
	}
}
