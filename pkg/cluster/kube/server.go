package kube

import (
	"context"
	"encoding/json"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// Release gets which release of Kubernetes the API server is, such as v1.34.2. Unlike the client's own method it ends with ctx, and
// gives the message of a server that refuses.
func (c *Client) Release(ctx context.Context) (string, error) {
	const path = "/version"
	op := failure.Op{Verb: "get", Kind: "version of the API", Name: "server"}
	result := c.Typed.Discovery().RESTClient().Get().AbsPath(path).Do(ctx)
	if err := result.Error(); err != nil { // Raw does not read the message of a refusal
		return "", op.Wrap(err)
	}
	raw, err := result.Raw()
	if err != nil {
		return "", op.Wrap(err)
	}
	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil {
		return "", op.Wrap(fmt.Errorf("read the answer: %w", err))
	}
	return info.GitVersion, nil
}

// User is the caller's name at the API server; empty if the server does not report it, as those before 1.28 do not.
func (c *Client) User(ctx context.Context) string {
	review, err := c.Typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "" // who needs it can do without
	}
	return review.Status.UserInfo.Username
}
