package datadir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/sandbox/setting"
)

var marker = NewMarker("v1.37.1", "dev", setting.Defaults())

func TestDefaultPath(t *testing.T) {
	env := map[string]string{"HOME": "/home/u"}
	get := func(k string) string { return env[k] }
	if got := DefaultPath(get); got != "/home/u/.local/state/gangctl/sandbox" {
		t.Error(got)
	}
	env["XDG_STATE_HOME"] = "/s"
	if got := DefaultPath(get); got != "/s/gangctl/sandbox" {
		t.Error(got)
	}
	env["XDG_STATE_HOME"] = "relative" // the specification requires that it is ignored
	if got := DefaultPath(get); got != "/home/u/.local/state/gangctl/sandbox" {
		t.Error(got)
	}
}

func TestClaim(t *testing.T) {
	missing := Dir(filepath.Join(t.TempDir(), "a", "b"))
	found, err := missing.Claim(marker)
	if err != nil || found != nil {
		t.Fatalf("a directory that does not exist: %v, %v", found, err)
	}
	withPorts := marker
	withPorts.Ports = map[string]int{"apiserver": 6443}
	if err := missing.WriteMarker(withPorts); err != nil {
		t.Fatal(err)
	}
	if found, err = missing.Claim(marker); err != nil || found == nil {
		t.Fatalf("our own: %v, %v", found, err)
	}
	if kept, err := missing.Marker(); err != nil || kept.Ports["apiserver"] != 6443 {
		t.Errorf("ports are forgotten: %+v, %v", kept, err)
	}
	if _, err := Dir(t.TempDir()).Claim(marker); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
}

// Keys are in it: one that is there is closed to others, and one of another user is not used.
func TestClaimClosesToOthers(t *testing.T) {
	open := Dir(t.TempDir())
	if err := os.Chmod(string(open), 0o777); err != nil { //nolint:gosec // on purpose
		t.Fatal(err)
	}
	if _, err := open.Claim(marker); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(string(open)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if os.Getuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	foreign := t.TempDir()
	if err := os.Chown(foreign, 12345, -1); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(foreign, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{foreign, link} {
		if _, err := Dir(dir).Claim(marker); err == nil || !strings.Contains(err.Error(), "belongs to another user, with id 12345") {
			t.Errorf("%s: got %v", dir, err)
		}
	}
}

func TestClaimRefuses(t *testing.T) {
	full := t.TempDir()
	write(t, filepath.Join(full, "thesis.tex"), "x")
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	stale := t.TempDir()
	write(t, filepath.Join(stale, "sandbox.json"), `{"format":1,"kubernetes":"v1.20.0"}`)
	damaged := t.TempDir()
	write(t, filepath.Join(damaged, "sandbox.json"), `{`)
	tests := []struct{ name, dir, message, hint string }{
		{"somebody else's", full, "is not empty and no sandbox made it", "--data-dir"},
		{"a file", file, "is not a directory", "--data-dir"},
		{"below a file", filepath.Join(file, "x"), "is not a directory", "--data-dir"},
		{"another version", stale, "of another version (Kubernetes v1.20.0", "gangctl-sandbox down --data-dir " + stale},
		{"damaged", damaged, "is damaged", "remove the directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Dir(tt.dir).Claim(marker)
			var f *failure.Error
			if !errors.As(err, &f) || !strings.Contains(f.Message, tt.message) || !strings.Contains(f.Hint, tt.hint) {
				t.Errorf("got %+v", f)
			}
		})
	}
	if entries, _ := os.ReadDir(full); len(entries) != 1 {
		t.Errorf("the refused directory was changed: %v", entries)
	}
}

func TestRemoveOnlyOurs(t *testing.T) {
	other := t.TempDir()
	write(t, filepath.Join(other, "thesis.tex"), "x")
	if err := Dir(other).Remove(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(other, "thesis.tex")); err != nil {
		t.Error("somebody else's file is gone")
	}
	ours := Dir(filepath.Join(t.TempDir(), "x"))
	if _, err := ours.Claim(marker); err != nil {
		t.Fatal(err)
	}
	if err := ours.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(ours)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestLock(t *testing.T) {
	d := Dir(t.TempDir())
	if held, err := d.Held(SupervisorLock); held || err != nil {
		t.Fatalf("never taken: %v, %v", held, err)
	}
	l, err := d.TryLock(SupervisorLock)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetPID(); err != nil {
		t.Fatal(err)
	}
	if pid, err := d.SupervisorPID(); err != nil || pid != os.Getpid() {
		t.Errorf("pid %d, %v", pid, err)
	}
	if _, err := d.TryLock(SupervisorLock); !errors.Is(err, ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.WaitLock(short, SupervisorLock); !errors.Is(err, ErrLocked) {
		t.Errorf("wait for a held lock: %v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if held, err := d.Held(SupervisorLock); held || err != nil {
		t.Errorf("after unlock: %v, %v", held, err)
	}
}

func TestExplain(t *testing.T) {
	for errno, hint := range map[syscall.Errno]string{
		syscall.ENOSPC: "free some space",
		syscall.EDQUOT: "free some space",
		syscall.EROFS:  "that you can write to",
		syscall.EACCES: "that you can write to",
	} {
		var f *failure.Error
		if err := explain(&fs.PathError{Op: "write", Path: "/d/x", Err: errno}); !errors.As(err, &f) || !strings.Contains(f.Hint, hint) {
			t.Errorf("%v: %+v", errno, f)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
