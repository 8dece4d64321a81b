package paging

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pages is a server of a list of objects 0 to n-1, two a page.
type pages struct {
	n        int
	expires  int   // how many pages after the first fail as expired
	fails    error // of the second page
	loops    bool  // the last page names the second as the next one
	parts    bool  // it parts what has no limit, too
	requests []metav1.ListOptions
}

func (p *pages) list(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	p.requests = append(p.requests, o)
	if o.Continue != "" && o.ResourceVersion != "" {
		return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	from, _ := strconv.Atoi(o.Continue)
	if from > 0 && p.fails != nil {
		return nil, p.fails
	}
	if from > 0 && p.expires > 0 {
		p.expires--
		return nil, apierrors.NewResourceExpired("The provided continue parameter is too old")
	}
	size := 2
	if o.Limit == 0 && !p.parts {
		size = p.n
	}
	l := &corev1.PodList{}
	for i := from; i < min(from+size, p.n); i++ {
		l.Items = append(l.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}})
	}
	switch {
	case from+size < p.n:
		l.Continue = strconv.Itoa(from + size)
	case p.loops:
		l.Continue = "2"
	}
	return l, nil
}

// Whatever a server does between two pages: all objects, each once, or an error.
func TestPageTwo(t *testing.T) {
	broken := errors.New("connection reset")
	for name, tt := range map[string]struct {
		server  pages
		wrong   func(error) bool
		lists   int // how many requests are made
		version string
	}{
		"one page":                                {server: pages{n: 2}, lists: 1},
		"no objects":                              {server: pages{}, lists: 1},
		"three pages":                             {server: pages{n: 5}, lists: 3},
		"from the cache":                          {server: pages{n: 5}, lists: 3, version: "0"},
		"the token expires":                       {server: pages{n: 5, expires: 1}, lists: 3},
		"the token expires, of a cached list":     {server: pages{n: 5, expires: 1}, lists: 3, version: "0"},
		"it expires, and then is parted again":    {server: pages{n: 5, expires: 1, parts: true}, lists: 5},
		"it expires again and again":              {server: pages{n: 5, expires: 100, parts: true}, lists: 4, wrong: apierrors.IsResourceExpired},
		"the second page fails":                   {server: pages{n: 5, fails: broken}, lists: 2, wrong: func(err error) bool { return errors.Is(err, broken) }},
		"the right to list is lost in between":    {server: pages{n: 5, fails: apierrors.NewForbidden(corev1.Resource("pods"), "", nil)}, lists: 2, wrong: apierrors.IsForbidden},
		"the last page is followed by an earlier": {server: pages{n: 5, loops: true}, lists: 3, wrong: func(err error) bool { return errors.Is(err, errEndless) }},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := All(t.Context(), metav1.ListOptions{ResourceVersion: tt.version}, tt.server.list)
			if len(tt.server.requests) != tt.lists {
				t.Errorf("%d requests: %+v", len(tt.server.requests), tt.server.requests)
			}
			if tt.wrong != nil {
				if err == nil || !tt.wrong(err) || got != nil {
					t.Errorf("got %d pages, %v", len(got), err)
				}
				return
			}
			var names []string
			for _, page := range got {
				for i := range page.Items {
					names = append(names, page.Items[i].Name)
				}
			}
			if want := []string{"0", "1", "2", "3", "4"}[:tt.server.n]; err != nil || !slices.Equal(names, want) {
				t.Errorf("got %v, want %v: %v", names, want, err)
			}
		})
	}
}

// A page has a limit unless a caller sets one, and the pages after it have the same.
func TestLimit(t *testing.T) {
	for limit, want := range map[int64]int64{0: Size, 7: 7} {
		server := pages{n: 5}
		if _, err := All(t.Context(), metav1.ListOptions{Limit: limit}, server.list); err != nil {
			t.Fatal(err)
		}
		for _, o := range server.requests {
			if o.Limit != want {
				t.Errorf("limit %d: requested %+v", limit, o)
			}
		}
	}
}

// followed matches what reads a list in pages by itself.
var followed = regexp.MustCompile(`tools/pager"|\.Continue\b|\.GetContinue\(\)|\.GetRemainingItemCount\(\)|\.RemainingItemCount\b`)

// Lists are followed in one place: elsewhere the next page would be forgotten, or be requested without an end.
func TestNothingElsePages(t *testing.T) {
	found := 0
	for _, root := range []string{"../../../pkg", "../../../scheduler", "../../../sandbox", "../../../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || !followed.Match(text) {
				return err
			}
			if found++; filepath.ToSlash(path) != "../../../pkg/cluster/paging/paging.go" {
				t.Errorf("%s reads pages by itself: %s", path, followed.Find(text))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Error("the pattern does not match this package")
	}
}
