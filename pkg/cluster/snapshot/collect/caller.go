package collect

import (
	"context"
	"errors"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// deniedUser is the user who was refused, in the authorizer's message.
var deniedUser = regexp.MustCompile(`User "([^"]+)" cannot `)

// caller records the caller, where something was refused: a rule that grants it needs a name. A server that does not report it, or
// not to this user, has most often named the user in its refusals.
func caller(ctx context.Context, client *kube.Client, s *snapshot.Snapshot) {
	if len(s.Denied) == 0 {
		return
	}
	if user := client.User(ctx); user != "" {
		s.Caller = user
		return
	}
	s.Caller = deniedCaller(s.Denied)
}

// deniedCaller is the user whom refusals name; empty if none does.
func deniedCaller(denied []snapshot.Denial) string {
	for _, d := range denied {
		if m := deniedUser.FindStringSubmatch(d.Message); m != nil {
			return m[1]
		}
	}
	return ""
}

// refusalMessage is the API server's own message of a refusal.
func refusalMessage(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
