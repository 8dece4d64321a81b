package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/version"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// Release asks which release of Kubernetes the API server is, such as v1.34.2. Unlike the client's own method it ends with ctx, and
// gives the words of a server that refuses.
func (c *Client) Release(ctx context.Context) (string, error) {
	const path = "/version"
	op := failure.Op{Verb: "get", Kind: "version of the API", Name: "server"}
	result := c.Typed.Discovery().RESTClient().Get().AbsPath(path).Do(ctx)
	if err := result.Error(); err != nil { // Raw does not read the words of a refusal
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
