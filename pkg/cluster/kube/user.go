package kube

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// User is who the API server says that the caller is; empty if it does not tell, as those before 1.28 do not.
func (c *Client) User(ctx context.Context) string {
	review, err := c.Typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "" // who needs it can do without
	}
	return review.Status.UserInfo.Username
}
