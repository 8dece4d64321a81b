package collect

import (
	"context"
	"errors"
	"regexp"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// deniedUser is who was refused, in the authorizer's words.
var deniedUser = regexp.MustCompile(`User "([^"]+)" cannot `)

// caller writes down who asks, where something was refused: a rule that grants it needs a name. A server that does not tell, or
// not to this user, has most often told in its refusals.
func caller(ctx context.Context, client *kube.Client, s *snapshot.Snapshot) {
	if len(s.Denied) == 0 {
		return
	}
	review, err := client.Typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err == nil && review.Status.UserInfo.Username != "" {
		s.Caller = review.Status.UserInfo.Username
		return
	}
	for _, d := range s.Denied {
		if m := deniedUser.FindStringSubmatch(d.Message); m != nil {
			s.Caller = m[1]
			return
		}
	}
}

// words are how an API server put a refusal.
func words(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
