package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

func TestSettings(t *testing.T) {
	var s settings
	root, submit := newTree(&s)
	root.PersistentFlags().String("token", "", "")
	root.PersistentFlags().String("color", "", "")
	if err := submit.ParseFlags([]string{"--workers=7", "--color=never"}); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, "image: file\nworkers: 2\nenv: [A=1, B=2]\ntoken: secret\nnamespace: {a: 1}\nunknown: x\nprofiles: {big: {image: profile}}\n",
		map[string]string{"GANGCTL_DRY": "true"}, "big")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range c.Settings(root, submit) {
		got = append(got, strings.ReplaceAll(fmt.Sprintf("%s=%s from %s", s.Key, strings.Join(s.Values, "|"), s.Origin), c.path, "FILE"))
	}
	want := []string{
		"color=never from --color", "dry=true from GANGCTL_DRY", "env=A=1|B=2 from settings FILE: env", "image=profile from settings FILE: profile big: image",
		"namespace={a: 1} from settings FILE: namespace", "token=REDACTED from settings FILE: token", "workers=2 from settings FILE: workers",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestOverridden(t *testing.T) {
	c, err := load(t, "image: i\nworkers: 1\nprofiles: {big: {image: j}}\n", map[string]string{"GANGCTL_WORKERS": "3"}, "big")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range [][3]string{
		{"", "image", "settings FILE: profile big: image"}, {"big", "image", ""}, {"", "workers", "GANGCTL_WORKERS"}, {"big", "workers", "GANGCTL_WORKERS"}, {"", "env", ""},
	} {
		if got := strings.ReplaceAll(c.Overridden(tt[0], tt[1]), c.path, "FILE"); got != tt[2] {
			t.Errorf("%q %s: got %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

func TestHeld(t *testing.T) {
	c, err := load(t, "image: i\nprofile: big\nprofiles: {big: {workers: 1, env: a}}\n", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if top, big := c.Held(""), c.Held("big"); !slices.Equal(top, []string{"image", "profile"}) || !slices.Equal(big, []string{"env", "workers"}) {
		t.Errorf("got %q, %q", top, big)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		key           string
		values        []string
		message, hint string
	}{
		{"image", []string{"i"}, "", ""},
		{"env", []string{"A=1", "B=2"}, "", ""},
		{"namespace", []string{"n"}, "", ""},
		{"image", []string{" "}, "image is empty", "give it a value, or take the setting away: gangctl config unset image"},
		{"imgae", []string{"i"}, `unknown key "imgae"`, `did you mean "image"?`},
		{"frobnication", []string{"i"}, `unknown key "frobnication"`, "a key is a flag of any command without its dashes, such as image for --image"},
		{"secure-port", []string{"1"}, `unknown key "secure-port"`, "a key is a flag of any command without its dashes, such as image for --image"},
		{"output", []string{"wide"}, `"output" cannot be set: --output is about one run, or differs between commands`, ""},
		{"profile", []string{"big"}, `"profile" is no flag's default`, "choose a profile with 'gangctl config use-profile NAME'"},
		{"workers", []string{"many"}, `workers: "many": must be a whole number (--workers of gangctl submit)`, ""},
		{"image", []string{"a", "b"}, `image: "a b": must be a single value (--image of gangctl submit)`, ""},
	}
	for _, tt := range tests {
		var s settings
		root, _ := newTree(&s)
		got := failure.From(Validate(root, tt.key, tt.values))
		if got == nil {
			got = &failure.Error{}
		}
		if got.Message != tt.message || got.Hint != tt.hint {
			t.Errorf("%s: got %+v", tt.key, got)
		}
	}
}

// A value has to suit every command that has the flag.
func TestValidateRunsForEveryCommand(t *testing.T) {
	var s settings
	root, _ := newTree(&s)
	other := &cobra.Command{Use: "other", Run: func(*cobra.Command, []string) {}}
	other.Flags().Int("image", 0, "")
	root.AddCommand(other)
	if err := Validate(root, "image", []string{"i"}); err == nil || !strings.HasSuffix(err.Error(), "(--image of gangctl other)") {
		t.Errorf("got %v", err)
	}
}

// A default for jobs does not change an installation; the flags of every command have their defaults there, too.
func TestOnlyTyped(t *testing.T) {
	var s settings
	root, _ := newTree(&s)
	install := &cobra.Command{Use: "install", Annotations: map[string]string{OnlyTyped: "true"}}
	scheduler := &cobra.Command{Use: "scheduler", Run: func(*cobra.Command, []string) {}}
	scheduler.Flags().String("image", "built-in", "")
	scheduler.Flags().Int("workers", 1, "")
	scheduler.Flags().Bool("ha", false, "")
	install.AddCommand(scheduler)
	root.AddCommand(install)
	c, err := load(t, "image: file\nworkers: many\nha: true\nnamespace: n\n", map[string]string{"GANGCTL_HA": "true"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := scheduler.ParseFlags(nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(scheduler); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"image": "built-in", "workers": "1", "ha": "false", "namespace": "n"} {
		if got := scheduler.Flag(name).Value.String(); got != want {
			t.Errorf("--%s: got %s, want %s", name, got, want)
		}
	}
	if keys := Keys(root); slices.Contains(keys, "ha") || !slices.Contains(keys, "image") {
		t.Errorf("got %q", keys)
	}
	if err := Validate(root, "ha", []string{"true"}); err == nil || err.Error() != `"ha" cannot be set: --ha only counts when it is typed` {
		t.Errorf("got %v", err)
	}
	var out strings.Builder
	c.Check(root, &out)
	if want := "key \"ha\" has no effect: --ha cannot be set, only typed\n"; !strings.HasSuffix(out.String(), want) || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("got %s", out.String())
	}
}

func TestPlain(t *testing.T) {
	var s settings
	root, _ := newTree(&s)
	for key, want := range map[string]bool{"workers": true, "dry": true, "image": false, "env": false, "grace": false} {
		if got := Plain(root, key); got != want {
			t.Errorf("%s: got %v", key, got)
		}
	}
}
