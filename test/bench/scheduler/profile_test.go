package scheduler

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// servingAt is where a scheduler with the arguments serving serves its metrics and profiles, to everybody.
const servingAt = "https://127.0.0.1:10299"

var serving = []string{"--secure-port", "10299", "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics,/debug/*"}

// profileSeconds is how long each profile lasts: short ones, as nobody knows when a run ends.
const profileSeconds = 2

// profile writes CPU profiles of our scheduler to the directory of GANGCTL_BENCH_PROFILES, one after the other until ctx ends, and what it
// has allocated; `go tool pprof` adds up the CPU profiles that it is given.
func profile(ctx context.Context, run string) {
	dir := os.Getenv("GANGCTL_BENCH_PROFILES")
	if dir == "" {
		return
	}
	client := untrusting()
	url := servingAt + "/debug/pprof/"
	name := strings.NewReplacer(" ", "-", ",", "").Replace(run)
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			err := save(ctx, client, fmt.Sprintf("%sprofile?seconds=%d", url, profileSeconds), filepath.Join(dir, fmt.Sprintf("%s-%03d.pb.gz", name, i)))
			if err == nil {
				err = save(ctx, client, url+"allocs", filepath.Join(dir, name+"-allocs.pb.gz"))
			}
			if err != nil {
				time.Sleep(50 * time.Millisecond) // it does not serve yet, or no more
			}
		}
	}()
}

// untrusting is a client of a scheduler, which makes its certificate at start.
func untrusting() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // nobody else listens there
}

func save(ctx context.Context, client *http.Client, url, path string) error {
	data, err := fetch(ctx, client, url)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return data, err
}
