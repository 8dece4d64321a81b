package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// RESTMapper maps the kinds of some API groups to the resources under which the API server serves them. A group that is not
// served maps nothing. An error names the discovery request that failed.
//
// It sends as few requests as discovery allows, unlike the cached discovery client, which always reads all groups and the core group as
// well: one for all groups where the server aggregates discovery, which those since 1.30 do, else one for the names of the groups and one
// for each version of those that are needed. The core group, "", takes one of its own.
func (c *Client) RESTMapper(ctx context.Context, groups ...string) (meta.RESTMapper, error) {
	var found []*restmapper.APIGroupResources
	if slices.Contains(groups, "") {
		core, err := c.groupResources(ctx, metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "v1", Version: "v1"}}})
		if err != nil {
			return nil, err
		}
		found = append(found, core)
	}
	if slices.ContainsFunc(groups, func(group string) bool { return group != "" }) {
		named, err := c.namedGroups(ctx, groups)
		if err != nil {
			return nil, err
		}
		found = append(found, named...)
	}
	return restmapper.NewDiscoveryRESTMapper(found), nil
}

// Versions are the versions of an API group in the order in which the API server prefers them; none of a group that it does not serve. It is one small
// request, where a [Client.RESTMapper] takes all groups. Not every version has every resource.
func (c *Client) Versions(ctx context.Context, group string) ([]string, error) {
	var found metav1.APIGroup
	err := c.Typed.Discovery().RESTClient().Get().AbsPath("/apis", group).Do(ctx).Into(&found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	var versions []string
	for _, version := range found.Versions {
		versions = append(versions, version.Version)
	}
	return versions, listResources().Wrap(err)
}

// listResources is the operation that discovery fails with.
func listResources() failure.Op { return failure.Op{Verb: "list", Kind: "API resource"} }

// namedGroups discovers API groups other than the core group.
func (c *Client) namedGroups(ctx context.Context, groups []string) ([]*restmapper.APIGroupResources, error) {
	var contentType string
	result := c.Typed.Discovery().RESTClient().Get().AbsPath("/apis").SetHeader("Accept", discovery.AcceptV2+","+discovery.AcceptV1).Do(ctx).ContentType(&contentType)
	switch err := result.Error(); { // unlike Raw, it has the server's message
	case apierrors.IsNotFound(err): // a server of the core group alone
		return nil, nil
	case err != nil:
		return nil, listResources().Wrap(err)
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, listResources().Wrap(err)
	}
	aggregated, err := discovery.ContentTypeIsGVK(contentType, apidiscoveryv2.SchemeGroupVersion.WithKind("APIGroupDiscoveryList"))
	if err != nil {
		return nil, listResources().Wrap(fmt.Errorf("content type %q: %w", contentType, err))
	}
	var list metav1.APIGroupList
	var resources map[schema.GroupVersion]*metav1.APIResourceList // nil where each group has to be queried
	if aggregated {
		var all apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, listResources().Wrap(err)
		}
		names, served, _ := discovery.SplitGroupsAndResources(all) // a version that cannot be discovered is not served
		list, resources = *names, served
	} else if err := json.Unmarshal(raw, &list); err != nil {
		return nil, listResources().Wrap(err)
	}
	var found []*restmapper.APIGroupResources
	for _, group := range list.Groups {
		if !slices.Contains(groups, group.Name) {
			continue
		}
		if resources == nil {
			g, err := c.groupResources(ctx, group)
			if err != nil {
				return nil, err
			}
			found = append(found, g)
			continue
		}
		g := &restmapper.APIGroupResources{Group: group, VersionedResources: map[string][]metav1.APIResource{}}
		for _, version := range group.Versions {
			if list := resources[schema.GroupVersion{Group: group.Name, Version: version.Version}]; list != nil {
				g.VersionedResources[version.Version] = list.APIResources
			}
		}
		found = append(found, g)
	}
	return found, nil
}

// groupResources gets the resources of each version of a group.
func (c *Client) groupResources(ctx context.Context, group metav1.APIGroup) (*restmapper.APIGroupResources, error) {
	found := &restmapper.APIGroupResources{Group: group, VersionedResources: map[string][]metav1.APIResource{}}
	client := discovery.ToDiscoveryInterfaceWithContext(c.Typed.Discovery())
	for _, version := range group.Versions {
		list, err := client.ServerResourcesForGroupVersionWithContext(ctx, version.GroupVersion)
		switch {
		case apierrors.IsNotFound(err): // gone since the group was listed
		case err != nil:
			return nil, listResources().Wrap(err)
		default:
			found.VersionedResources[version.Version] = list.APIResources
		}
	}
	return found, nil
}
