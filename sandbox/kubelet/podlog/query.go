package podlog

import (
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// query is a request for a log: the parameters of the kubelet API.
type query struct {
	follow, previous, timestamps bool
	// tail and limit are -1 for everything.
	tail, limit int64
	since       time.Time
}

func parseQuery(v url.Values, now time.Time) (query, error) {
	q := query{tail: -1, limit: -1}
	for name, to := range map[string]*bool{"follow": &q.follow, "previous": &q.previous, "timestamps": &q.timestamps} {
		if text := v.Get(name); text != "" {
			b, err := strconv.ParseBool(text)
			if err != nil {
				return q, fmt.Errorf("%s=%q: not true or false", name, text)
			}
			*to = b
		}
	}
	var sinceSeconds int64
	for name, to := range map[string]*int64{"tailLines": &q.tail, "limitBytes": &q.limit, "sinceSeconds": &sinceSeconds} {
		if text := v.Get(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 {
				return q, fmt.Errorf("%s=%q: not a number of 0 or more", name, text)
			}
			*to = n
		}
	}
	if sinceSeconds > 0 {
		q.since = now.Add(-time.Duration(sinceSeconds) * time.Second)
	}
	if text := v.Get("sinceTime"); text != "" {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return q, fmt.Errorf("sinceTime=%q: not a time such as 2026-01-02T03:04:05Z", text)
		}
		q.since = t
	}
	return q, nil
}
