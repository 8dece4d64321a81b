package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// settings are the flags of the command that tests configure.
type settings struct {
	image   string
	workers int32
	grace   time.Duration
	dry     bool
	env     []string
}

func newTree(s *settings) (root, submit *cobra.Command) {
	root = &cobra.Command{Use: "gangctl"}
	root.PersistentFlags().String("namespace", "", "")
	submit = &cobra.Command{Use: "submit", Run: func(*cobra.Command, []string) {}}
	submit.Flags().StringVar(&s.image, "image", "built-in", "")
	submit.Flags().Int32Var(&s.workers, "workers", 1, "")
	submit.Flags().DurationVar(&s.grace, "grace", 0, "")
	submit.Flags().String("output", "built-in", "")
	submit.Flags().BoolVar(&s.dry, "dry", false, "")
	submit.Flags().StringArrayVar(&s.env, "env", nil, "")
	hidden := &cobra.Command{Use: "scheduler", Hidden: true, Run: func(*cobra.Command, []string) {}}
	hidden.Flags().String("secure-port", "", "")
	root.AddCommand(submit, hidden)
	return root, submit
}

func load(t *testing.T, yaml string, env map[string]string, profile string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if yaml != "" {
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(path, func(k string) string { return env[k] }, profile)
}

func TestPath(t *testing.T) {
	tests := []struct{ xdg, want string }{
		{"", "/home/ann/.config/gangctl/config.yaml"},
		{"/etc/xdg", "/etc/xdg/gangctl/config.yaml"},
		{"relative", "/home/ann/.config/gangctl/config.yaml"},
	}
	for _, tt := range tests {
		env := map[string]string{"HOME": "/home/ann", "XDG_CONFIG_HOME": tt.xdg}
		if got := Path(func(k string) string { return env[k] }); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.xdg, got, tt.want)
		}
	}
}

// Without a home there is no settings file: the current directory is none.
func TestNoHome(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.MkdirAll(".config/gangctl", 0o700), os.WriteFile(".config/gangctl/config.yaml", []byte("image: evil\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{"", "."} {
		path := Path(func(name string) string { return map[string]string{"HOME": home}[name] })
		c, err := Read(path)
		if err != nil || path != "" || len(c.Held("")) > 0 {
			t.Errorf("HOME=%q: %q, %v", home, path, err)
		}
		if _, err := Open(path); err == nil || !strings.HasPrefix(err.Error(), "there is no settings file: ") {
			t.Errorf("HOME=%q: %v", home, err)
		}
	}
}

func TestPrecedence(t *testing.T) {
	const file = "image: file\nprofiles:\n  big: {image: profile}\n  empty: {}\n"
	tests := []struct {
		name, file, profile string
		env                 map[string]string
		args                []string
		want                string
	}{
		{name: "built in", want: "built-in"},
		{name: "file", file: file, want: "file"},
		{name: "profile by flag", file: file, profile: "big", want: "profile"},
		{name: "profile by environment", file: file, env: map[string]string{"GANGCTL_PROFILE": "Big"}, want: "profile"},
		{name: "profile by file", file: "profile: big\n" + file, want: "profile"},
		{name: "profile without the key", file: file, profile: "empty", want: "file"},
		{name: "environment", file: file, profile: "big", env: map[string]string{"GANGCTL_IMAGE": "env"}, want: "env"},
		{name: "flag", file: file, profile: "big", env: map[string]string{"GANGCTL_IMAGE": "env"}, args: []string{"--image=flag"}, want: "flag"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s settings
			_, submit := newTree(&s)
			if err := submit.ParseFlags(tt.args); err != nil {
				t.Fatal(err)
			}
			c, err := load(t, tt.file, tt.env, tt.profile)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Apply(submit); err != nil || s.image != tt.want {
				t.Errorf("got %q, %v; want %q", s.image, err, tt.want)
			}
			if changed := submit.Flags().Changed("image"); changed != (len(tt.args) > 0) {
				t.Errorf("changed: %v", changed)
			}
		})
	}
}

func TestTypes(t *testing.T) {
	var s settings
	_, submit := newTree(&s)
	c, err := load(t, "workers: 4\ngrace: 5m\ndry: true\nenv:\n- A=b c\n- \"B=1,2\"\nimage: 2.17\n", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(submit); err != nil {
		t.Fatal(err)
	}
	if s.workers != 4 || s.grace != 5*time.Minute || !s.dry || strings.Join(s.env, "|") != "A=b c|B=1,2" || s.image != "2.17" {
		t.Errorf("got %+v", s)
	}
	var fromEnv settings
	_, submit = newTree(&fromEnv)
	if c, err = load(t, "", map[string]string{"GANGCTL_ENV": "A=b c"}, ""); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(submit); err != nil || strings.Join(fromEnv.env, "|") != "A=b c" {
		t.Errorf("a list from the environment: %q, %v", fromEnv.env, err)
	}
}

// What means something else in every command is not set, wherever it stands.
func TestTypedOnly(t *testing.T) {
	var s settings
	_, submit := newTree(&s)
	c, err := load(t, "output: file\nprofiles: {big: {output: profile}}\n", map[string]string{"GANGCTL_OUTPUT": "env"}, "big")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(submit); err != nil || submit.Flag("output").Value.String() != "built-in" {
		t.Errorf("got %s, %v", submit.Flag("output").Value, err)
	}
}

// Who looks at the settings sees what looks like one.
func TestCheckEnvironment(t *testing.T) {
	var s settings
	root, _ := newTree(&s)
	var out bytes.Buffer
	CheckEnvironment(root, []string{"PATH=/", "GANGCTL_ZZZZZZZZZ=1", "GANGCTL_IMAEG=x", "GANGCTL_IMAGE=x", "GANGCTL_PROFILE=p", "GANGCTL_WAIT=done", "GANGCTL_EMPTY="}, &out)
	if want := "warning: GANGCTL_IMAEG is no setting: did you mean GANGCTL_IMAGE?\nwarning: GANGCTL_ZZZZZZZZZ is no setting\n"; out.String() != want {
		t.Errorf("got %s", &out)
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct {
		name, file, profile string
		env                 map[string]string
		message, hint       string
		code                failure.Code
	}{
		{name: "value in the file", file: "workers: many", message: `settings FILE: workers: "many": must be a whole number`, code: failure.CodeUsage},
		{name: "value in a profile", file: "profiles: {big: {workers: x}}", profile: "big",
			message: `settings FILE: profile big: workers: "x": must be a whole number`, code: failure.CodeUsage},
		{name: "value in the environment", env: map[string]string{"GANGCTL_DRY": "maybe"},
			message: `GANGCTL_DRY: "maybe": must be true or false`, code: failure.CodeUsage},
		{name: "list for one value", file: "image: [a, b]", message: `settings FILE: image: "[a b]": must be a single value`, code: failure.CodeUsage},
		{name: "map for a list", file: "env: {A: b}", message: `settings FILE: env: "map[a:b]": must be a text or a list of texts`, code: failure.CodeUsage},
		{name: "no such profile", file: "profiles: {b: {}, a: {}}", profile: "c",
			message: `profile "c" (from --profile) is not in FILE`, hint: "the profiles are: a, b", code: failure.CodeUsage},
		{name: "no profiles", env: map[string]string{"GANGCTL_PROFILE": "c"},
			message: `profile "c" (from GANGCTL_PROFILE) is not in FILE`, hint: "add it under `profiles:` in the file", code: failure.CodeUsage},
		{name: "broken", file: "image: i\n workers: 3\n", message: "settings FILE: line 2: mapping values are not allowed in this context",
			hint: "correct the file, or move it out of the way", code: failure.CodeError},
		{name: "profiles is a list", file: "profiles: [a]", message: "settings FILE: profiles: must map names to settings", code: failure.CodeError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s settings
			_, submit := newTree(&s)
			path := filepath.Join(t.TempDir(), "config.yaml")
			if tt.file != "" {
				if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c, err := Load(path, func(k string) string { return tt.env[k] }, tt.profile)
			if err == nil {
				err = c.Apply(submit)
			}
			got := failure.From(err)
			if got == nil || strings.ReplaceAll(got.Message, path, "FILE") != tt.message || got.Hint != tt.hint || got.Code != tt.code {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	var s settings
	root, _ := newTree(&s)
	c, err := load(t, "imgae: i\nnamespace: n\nprofile: big\nsecure-port: 1\nhelp: true\noutput: wide\nprofiles:\n  big: {worker: 3, image: i, dry-run: client}\n  empty: {}\n",
		map[string]string{"GANGCTL_WAIT": "done"}, "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c.Check(root, &out)
	want := `warning: GANGCTL_WAIT has no effect: --wait cannot be set, only typed
warning: settings FILE: unknown key "help"
warning: settings FILE: unknown key "imgae": did you mean "image"?
warning: settings FILE: key "output" has no effect: --output cannot be set, only typed
warning: settings FILE: key "profiles.big.dry-run" has no effect: --dry-run cannot be set, only typed
warning: settings FILE: unknown key "profiles.big.worker": did you mean "workers"?
warning: settings FILE: unknown key "secure-port"
`
	if got := strings.ReplaceAll(out.String(), c.path, "FILE"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
