package kubetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// picker is a list of the objects of one kind in a namespace, or in all.
type picker func(s *snapshot.Snapshot, namespace string) map[string]any

// endWatches ends all watches with the test, before its server waits for them.
func (l *Cluster) endWatches(t *testing.T) {
	t.Cleanup(func() { l.change(func() { l.states = nil }) })
}

// watch sends what changes from the requested resource version on, until the path fails or the test ends.
func (l *Cluster) watch(w http.ResponseWriter, r *http.Request, pick picker) {
	at, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		panic(fmt.Sprintf("kubetest: watch from %q", r.URL.RawQuery))
	}
	began := false
	for {
		l.mu.Lock()
		states, broken, unwatched, changed := l.states, l.broken[r.URL.Path], l.unwatched[r.URL.Path], l.changed
		l.mu.Unlock()
		if unwatched {
			parts := strings.Split(r.URL.Path, "/")
			broken = Status(403, metav1.StatusReasonForbidden, `cannot watch resource "`+parts[len(parts)-1]+`"`, nil)
		}
		switch {
		case broken != nil && !began:
			Write(w, int(broken.Code), broken)
			return
		case broken != nil || len(states) == 0:
			return
		}
		if !began {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			began = true
		}
		for ; at < len(states); at++ {
			namespace := r.PathValue("namespace")
			if _, err := w.Write(events(pick(states[at-1], namespace), pick(states[at], namespace), at+1)); err != nil {
				return // the client is gone
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}

// events are those of a watch for the changes between two lists.
func events(before, after map[string]any, version int) []byte {
	then, now := byName(before), byName(after)
	var stream bytes.Buffer
	encode := func(kind string, object map[string]any) {
		object["kind"], object["apiVersion"] = strings.TrimSuffix(after["kind"].(string), "List"), after["apiVersion"]
		object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(version)
		if err := json.NewEncoder(&stream).Encode(map[string]any{"type": kind, "object": object}); err != nil {
			panic(fmt.Sprintf("kubetest: %v", err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(then)) {
		if now[name] == nil {
			encode("DELETED", decoded(then[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch {
		case then[name] == nil:
			encode("ADDED", decoded(now[name]))
		case !bytes.Equal(then[name], now[name]):
			encode("MODIFIED", decoded(now[name]))
		}
	}
	return stream.Bytes()
}

// byName are the encoded objects of a list by NAMESPACE/NAME.
func byName(list map[string]any) map[string]json.RawMessage {
	raw, err := json.Marshal(list["items"])
	var all []json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		panic(fmt.Sprintf("kubetest: %v", err))
	}
	named := map[string]json.RawMessage{}
	for _, one := range all {
		meta := decoded(one)["metadata"].(map[string]any)
		named[fmt.Sprintf("%v/%v", meta["namespace"], meta["name"])] = one
	}
	return named
}

func decoded(raw json.RawMessage) map[string]any {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		panic(fmt.Sprintf("kubetest: %v", err))
	}
	return object
}
