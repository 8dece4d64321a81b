package generated

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/prerequisite"
)

const hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

var baseImage = regexp.MustCompile(`(?m)^(?:FROM|defaultBaseImage:|\s+base_image:) (\S+)$`)

// bases are what the files build the image on.
func bases(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, file := range []string{"Dockerfile", ".ko.yaml", ".goreleaser.yaml"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		found := baseImage.FindAllStringSubmatch(string(data), -1)
		if len(found) != 1 {
			t.Fatalf("%s names %d base images", file, len(found))
		}
		all[file] = found[0][1]
	}
	return all
}

// makes runs a target of the Makefile in a directory.
func makes(t *testing.T, dir string, args ...string) (output string, err error) {
	t.Helper()
	file, err := filepath.Abs("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil { // what only another process reads does not count for the cache of test results
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), prerequisite.Program(t, "make"), append([]string{"-s", "-f", file}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The image has one base, however it is built, and `make pin-base` names it by digest in every file.
func TestBaseImage(t *testing.T) {
	want := ""
	for file, base := range bases(t, "../..") {
		if want == "" {
			want = base
		}
		if base != want {
			t.Errorf("%s builds on %s, another on %s", file, base, want)
		}
	}
	dir := t.TempDir()
	for file := range bases(t, "../..") {
		data, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		tagged := regexp.MustCompile(`@sha256:[0-9a-f]+`).ReplaceAll(data, nil)
		if err := os.WriteFile(filepath.Join(dir, file), tagged, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := makes(t, dir, "base-pinned"); err == nil || !strings.Contains(out, "names the base image by its tag: make pin-base") {
		t.Errorf("a tag passes for pinned: %v\n%s", err, out)
	}
	if out, err := makes(t, dir, "pin-base", "DIGEST=sha256:0"); err == nil || !strings.Contains(out, "sha256:0 is no digest") {
		t.Errorf("anything is written: %v\n%s", err, out)
	}
	for _, digest := range []string{hex, strings.Repeat("f", 64)} { // the second replaces the first
		if out, err := makes(t, dir, "pin-base", "DIGEST=sha256:"+digest); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for file, base := range bases(t, dir) {
			if !strings.HasSuffix(base, ":nonroot@sha256:"+digest) {
				t.Errorf("%s builds on %s", file, base)
			}
		}
	}
	if out, err := makes(t, dir, "base-pinned"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The manifests of a release name its image by the digest that was pushed.
func TestReleaseManifest(t *testing.T) {
	prerequisite.Program(t, "jq")
	const archive, image = `{"name":"gangctl_1.2.3_linux_amd64.tar.gz","type":"Archive","extra":{"ID":"gangctl"}}`, "ghcr.io/gangctl/gangctl"
	pushed := func(name, digest string) string {
		return `{"name":"` + name + `","type":"Docker Manifest","extra":{"Digest":"` + digest + `","ID":"gangctl"}}`
	}
	for _, tt := range []struct {
		name, artifacts string
		ok              bool
	}{
		{"as ko names it", archive + "," + pushed(image+"@sha256:"+hex, "sha256:"+hex), true},
		{"by two tags", archive + "," + pushed(image+":v1.2.3", "sha256:"+hex) + "," + pushed(image+":latest", "sha256:"+hex), true},
		{"two images", pushed(image+":v1.2.3", "sha256:"+hex) + "," + pushed(image+":v1.2.4", "sha256:"+strings.Repeat("a", 64)), false},
		{"another's", pushed(image+"-sandbox:v1.2.3", "sha256:"+hex), false},
		{"nothing was pushed", archive, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			program := filepath.Join(dir, "gangctl")
			for path, text := range map[string]string{
				filepath.Join(dir, "artifacts.json"): "[" + tt.artifacts + "]", filepath.Join(dir, "metadata.json"): `{"tag":"v1.2.3"}`, program: "#!/bin/sh\necho \"$@\"\n",
			} {
				if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			out, err := makes(t, dir, "release-manifest", "DIST="+dir, "GANGCTL="+program)
			if !tt.ok {
				if err == nil || !strings.Contains(out, "has no digest of "+image+", or several") {
					t.Errorf("%v\n%s", err, out)
				}
				return
			}
			got, readErr := os.ReadFile(filepath.Join(dir, "gang-scheduler.yaml"))
			if want := "install scheduler --export --image " + image + ":v1.2.3@sha256:" + hex + "\n"; err != nil || readErr != nil || string(got) != want {
				t.Errorf("got %q, want %q; %v\n%s", got, want, err, out)
			}
		})
	}
}
