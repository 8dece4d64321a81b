// Package version is the version of this gangctl.
package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Stamped by the linker (-X github.com/gangctl/gangctl/pkg/version.version=v1.2.3); a plain `go build` or `go install`
// leaves them empty, and Get falls back on what the Go toolchain records in the binary.
var version, commit, date string

// kubernetesModule is the library whose version decides which Kubernetes API gangctl speaks.
const kubernetesModule = "k8s.io/client-go"

// Info describes one build of gangctl. Its JSON form is the answer of `gangctl version -o json`; fields are only added.
type Info struct {
	// Version is the release (v1.2.3), a pseudo-version, or "dev".
	Version string `json:"version"`
	// Commit is the full git commit hash, with "-dirty" if the tree was modified; empty if unknown.
	Commit string `json:"commit,omitempty"`
	// Date is the time of the commit or the release in RFC 3339; empty if unknown.
	Date string `json:"date,omitempty"`
	// GoVersion is the toolchain, such as go1.26.8.
	GoVersion string `json:"goVersion"`
	// Platform is GOOS/GOARCH.
	Platform string `json:"platform"`
	// Kubernetes is the version of client-go that is linked in.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Get returns the running binary's Info: link-time values first, then the build information embedded by the toolchain.
func Get() Info {
	build, _ := debug.ReadBuildInfo()
	return from(build, Info{Version: version, Commit: commit, Date: date})
}

func from(build *debug.BuildInfo, info Info) Info {
	info.GoVersion = runtime.Version()
	info.Platform = runtime.GOOS + "/" + runtime.GOARCH
	if build == nil {
		build = &debug.BuildInfo{}
	}
	if info.Version == "" {
		info.Version = "dev"
		if v := build.Main.Version; v != "" && v != "(devel)" {
			info.Version = v
		}
	}
	settings := map[string]string{}
	for _, s := range build.Settings {
		settings[s.Key] = s.Value
	}
	if info.Commit == "" && settings["vcs.revision"] != "" {
		info.Commit = settings["vcs.revision"]
		if settings["vcs.modified"] == "true" {
			info.Commit += "-dirty"
		}
	}
	if info.Date == "" {
		info.Date = settings["vcs.time"]
	}
	for _, dep := range build.Deps {
		if dep.Path == kubernetesModule {
			info.Kubernetes = dep.Version
		}
	}
	return info
}

// UserAgent is the User-Agent of requests to API servers: gangctl/VERSION without characters that end a product token.
func (i Info) UserAgent() string {
	return "gangctl/" + strings.Map(func(r rune) rune {
		if r <= ' ' || r == '(' || r == ')' || r == '/' {
			return '_'
		}
		return r
	}, i.Version)
}
