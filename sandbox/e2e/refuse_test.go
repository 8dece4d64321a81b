package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/sandboxtest"
)

func TestRefuses(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	used := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	tests := []struct {
		name string
		// prepare changes an empty directory and returns the data dir.
		prepare func(t *testing.T, dir string) string
		args    []string
		code    int
		want    []string
	}{
		{name: "a port in use", args: bare("--port", used), code: 1,
			want: []string{"error: port " + used + " on 127.0.0.1 cannot be used", "address already in use", "hint: choose another one with --port"}},
		{name: "a file in the place of the directory", prepare: under("", "data"), code: 1, args: bare(),
			want: []string{"is not a directory", "hint: choose another one with --data-dir"}},
		{name: "a directory that cannot be made", prepare: func(t *testing.T, dir string) string {
			under("", "data")(t, dir)
			return filepath.Join(dir, "data", "below")
		}, code: 1, args: bare(), want: []string{"not a directory", "hint:"}},
		{name: "somebody else's directory", prepare: func(t *testing.T, dir string) string {
			under("data", "thesis.tex")(t, dir)
			return filepath.Join(dir, "data")
		}, code: 1, args: bare(), want: []string{"is not empty and no sandbox made it", "hint:"}},
		{name: "a stale sandbox", prepare: func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, "data", "sandbox.json"), `{"format": 1, "kubernetes": "v1.20.0", "settings": {}}`)
			return filepath.Join(dir, "data")
		}, code: 1, args: bare(), want: []string{"another version (Kubernetes v1.20.0", "hint: remove it and start again: gangctl-sandbox down --data-dir"}},
		{name: "a read-only directory", prepare: immutable, code: 1, args: bare(), want: []string{"hint: choose a directory that you can write to"}},
		{name: "a storage that is damaged", prepare: damagedStorage, code: 1, args: bare(), want: []string{"a component ended: etcd", "its last lines in", "hint:"}},
		{name: "a node file that is none", prepare: func(_ *testing.T, dir string) string { return filepath.Join(dir, "data") },
			code: 1, args: bare("--node-file=/does/not/exist"), want: []string{"--node-file", "no such file"}},
		{name: "an unknown scheduler", code: 2, args: []string{"--scheduler=volcano"}, want: []string{`--scheduler "volcano": must be gang, default or none`}},
		{name: "an unknown flag", code: 2, args: []string{"--colour"}, want: []string{"unknown flag: --colour", "hint: see gangctl-sandbox up --help"}},
		{name: "an argument", code: 2, args: []string{"now"}, want: []string{"takes no arguments"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "sandbox")
			if tt.prepare != nil {
				dir = tt.prepare(t, t.TempDir())
			}
			c := &sandboxtest.Cluster{Binary: sandboxtest.Binary(t), DataDir: dir}
			wantError(t, c, tt.code, tt.want, "up", tt.args...)
			if err := gone(t, c); err != nil {
				t.Error(err)
			}
		})
	}
}

// A stale sandbox can be removed with the command of the hint.
func TestDownOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	write(t, filepath.Join(dir, "sandbox.json"), `{"format": 0, "kubernetes": "v1.20.0"}`)
	c := &sandboxtest.Cluster{Binary: sandboxtest.Binary(t), DataDir: dir}
	if _, stderr, err := c.Run("down"); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
}

// A disk that is full from the start, and one that fills up while etcd starts.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]string{"before anything": "4k", "under the storage": "400k"} {
		t.Run(name, func(t *testing.T) {
			mount := t.TempDir()
			if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", mount).CombinedOutput(); err != nil {
				t.Skipf("no file system can be mounted here: %s", out)
			}
			t.Cleanup(func() { _ = exec.Command("umount", "-l", mount).Run() })
			c := &sandboxtest.Cluster{Binary: sandboxtest.Binary(t), DataDir: filepath.Join(mount, "d")}
			wantError(t, c, 1, []string{"no space left on device", "hint:"}, "up", bare()...)
			if err := gone(t, c); err != nil {
				t.Error(err)
			}
		})
	}
}

// immutable makes a directory that even root cannot write to; root is let
// through by file modes.
func immutable(t *testing.T, dir string) string {
	t.Helper()
	if os.Getuid() != 0 {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "data")
	}
	mount := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", mount).CombinedOutput(); err != nil {
		t.Skipf("root can write everywhere, and nothing can be mounted read-only: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", mount).Run() })
	return filepath.Join(mount, "data")
}

// damagedStorage is our own data dir, whose storage is no database.
func damagedStorage(t *testing.T, dir string) string {
	t.Helper()
	c := sandboxtest.Start(t, sandboxtest.Options{DataDir: filepath.Join(dir, "data"), Args: bare()})
	kill(t, c)
	sandboxtest.Eventually(t, eventually, func() error { return gone(t, c) })
	if err := os.RemoveAll(filepath.Join(c.DataDir, "etcd")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.DataDir, "etcd"), strings.Repeat("x", 100))
	return c.DataDir
}

func under(sub, name string) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		path := filepath.Join(dir, sub, name)
		write(t, path, "not yours")
		return path
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
