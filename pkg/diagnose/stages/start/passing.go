package start

import (
	"regexp"
	"time"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// passingGrace is how long a kubelet may try again what often succeeds the next time, joiningGrace how long the nodes of a ComputeDomain may take to find each other, which they begin to do
// when the first pods of it arrive.
const (
	passingGrace = time.Minute
	joiningGrace = 3 * time.Minute
)

// notYetWatched is how a kubelet reports that it does not know a Secret or ConfigMap yet: it starts to watch those of a pod when the pod arrives.
var notYetWatched = regexp.MustCompile(`(?i)\bnot registered\b|failed to sync (secret|configmap) cache`)

// tookTooLong is how a kubelet reports that making a sandbox took too long. The second attempt often finds it made.
var tookTooLong = reports{"deadlineexceeded", "context deadline exceeded"}

// notYetJoined is how NVIDIA's DRA driver reports that the nodes of a ComputeDomain have not found each other.
var notYetJoined = regexp.MustCompile(`(?i)\bnot ready\b.*ComputeDomain|ComputeDomain.*\bnot ready\b`)

// divided divides the events of a pod: those of troubles that the kubelet has only just met, and that often pass by themselves, are apart.
func divided(c *stage.Context, events []view.Event) (lasting, passing []view.Event) {
	for _, e := range events {
		if passes(c, e) {
			passing = append(passing, e)
		} else {
			lasting = append(lasting, e)
		}
	}
	return lasting, passing
}

// passes reports whether what an event reports often passes by itself, and has had no time to.
func passes(c *stage.Context, e view.Event) bool {
	age := c.View.Age(e.First)
	if e.Reason == prepareFailed {
		return age < joiningGrace && notYetJoined.MatchString(e.Message)
	}
	if age >= passingGrace {
		return false
	}
	return e.Reason == mountFailed && notYetWatched.MatchString(e.Message) || e.Reason == sandboxFailed && e.Count == 1 && tookTooLong.MatchString(e.Message)
}
