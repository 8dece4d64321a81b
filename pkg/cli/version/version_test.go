package version

import (
	"runtime/debug"
	"testing"
)

func TestFrom(t *testing.T) {
	vcs := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc123"},
		{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		{Key: "vcs.modified", Value: "true"},
	}
	tests := []struct {
		name                  string
		build                 *debug.BuildInfo
		stamped               Info
		version, commit, date string
		kubernetes            string
	}{
		{name: "nothing known", version: "dev"},
		{name: "plain go build", build: &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs},
			version: "dev", commit: "abc123-dirty", date: "2026-01-02T03:04:05Z"},
		{name: "go install of a tag", build: &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"},
			Deps: []*debug.Module{{Path: "k8s.io/api", Version: "v9"}, {Path: "k8s.io/client-go", Version: "v0.37.1"}}},
			version: "v1.2.3", kubernetes: "v0.37.1"},
		{name: "the linker wins", build: &debug.BuildInfo{Main: debug.Module{Version: "v0.0.1"}, Settings: vcs},
			stamped: Info{Version: "v2.0.0", Commit: "fff", Date: "today"},
			version: "v2.0.0", commit: "fff", date: "today"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := from(tt.build, tt.stamped)
			if got.Version != tt.version || got.Commit != tt.commit || got.Date != tt.date || got.Kubernetes != tt.kubernetes {
				t.Errorf("got %+v", got)
			}
			if got.GoVersion == "" || got.Platform == "" {
				t.Errorf("toolchain or platform missing: %+v", got)
			}
		})
	}
}

func TestUserAgent(t *testing.T) {
	if got := (Info{Version: "v1.2.3 (x/y)"}).UserAgent(); got != "gangctl/v1.2.3__x_y_" {
		t.Errorf("got %q", got)
	}
}
