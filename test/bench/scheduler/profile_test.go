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

// profilePort is where a scheduler that is profiled serves.
const profilePort = "10299"

// profileSeconds is how long each profile lasts: short ones, as nobody knows when a run ends.
const profileSeconds = 2

// profile writes CPU profiles of our scheduler to the directory of GANGCTL_BENCH_PROFILES, one after the other until ctx ends, and what it
// has allocated; `go tool pprof` adds up the CPU profiles that it is given.
func profile(ctx context.Context, run string) {
	dir := os.Getenv("GANGCTL_BENCH_PROFILES")
	if dir == "" {
		return
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate is made at start
	url := "https://127.0.0.1:" + profilePort + "/debug/pprof/"
	name := strings.NewReplacer(" ", "-", ",", "").Replace(run)
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			err := fetch(ctx, client, fmt.Sprintf("%sprofile?seconds=%d", url, profileSeconds), filepath.Join(dir, fmt.Sprintf("%s-%03d.pb.gz", name, i)))
			if err == nil {
				err = fetch(ctx, client, url+"allocs", filepath.Join(dir, name+"-allocs.pb.gz"))
			}
			if err != nil {
				time.Sleep(50 * time.Millisecond) // it does not serve yet, or no more
			}
		}
	}()
}

func fetch(ctx context.Context, client *http.Client, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return os.WriteFile(path, data, 0o600)
}
