package start

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// around is what a kubelet and its runtime write around the reason why an image was not pulled, each of which has the image's name again.
var around = regexp.MustCompile(`^(?:Back-off pulling image "[^"]*"(?:: |$)|ErrImagePull: |[Ff]ailed to pull image "[^"]*": |rpc error: code = \w+ desc = |failed to pull and unpack image "[^"]*": |failed to resolve reference "[^"]*": |failed to resolve image: )`)

// query is that of an address, of which the reason has no need.
var query = regexp.MustCompile(`(https?://[^\s?"]+)\?[^\s:"]*`)

// reasonOf is the reason in a report on an image that was not pulled; all of it, where there is nothing else.
func reasonOf(report, image string) string {
	text := report
	for {
		rest := strings.TrimPrefix(around.ReplaceAllString(text, ""), image+": ")
		if rest == text {
			break
		}
		text = rest
	}
	if text == "" {
		return report
	}
	return query.ReplaceAllString(text, "$1")
}

// notAllowed is how a registry refuses who has no rights, or is not known; many report that what needs rights does not exist.
var notAllowed = regexp.MustCompile(`(?i)\b40[13]\b|unauthorized|forbidden|denied|authoriz|authenticat|no basic auth`)

// unretrieved is how a kubelet names the imagePullSecrets that it did not find.
var unretrieved = regexp.MustCompile(`image pull secrets \(([^)]*)\)`)

// secretsMissing adds to the finding that an image cannot be pulled which imagePullSecrets of the pod the kubelet finds no Secrets for, and that these are why, where the registry refuses who
// has none. Snapshots have no Secrets: the kubelet's report is all that shows it.
func secretsMissing(c *stage.Context, f *stage.Finding, m gang.Member, e *view.Event, image, report string) {
	found := unretrieved.FindStringSubmatch(e.Message)
	if found == nil {
		return
	}
	var names []string
	for _, name := range strings.Split(found[1], ",") {
		name = strings.TrimSpace(name)
		for _, ref := range m.Pod.Spec.ImagePullSecrets {
			if ref.Name == name && !slices.Contains(names, name) { // and no other text of an event
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	missing := fmt.Sprintf("%s %s, which its imagePullSecrets name, %s not exist in namespace %s", phrase.Verb(len(names), "Secret", "Secrets"), phrase.And(names), phrase.Verb(len(names), "does", "do"), c.Gang.Meta.Namespace)
	f.Fact("pullSecrets", names)
	if !notAllowed.MatchString(report) {
		f.Detail("%s", missing)
		return
	}
	before, reason, _ := strings.Cut(f.Message, "cannot be pulled: ")
	parts := strings.Split(reason, ": ")
	f.Message = fmt.Sprintf("%scannot be pulled: %s, and the registry refuses it (%s)", before, missing, parts[len(parts)-1])
	f.Detail("the kubelet reports: %s", report)
	f.Run(c.Kubectl("create", "secret", "docker-registry", names[0], "--docker-server="+registryOf(image), "--docker-username=USER", "--docker-password=PASSWORD"))
	slices.Reverse(f.Commands)
}

// hub is where images are whose names have no registry.
const hub = "https://index.docker.io/v1/"

// registryOf is the registry in the name of an image, as credentials name it.
func registryOf(image string) string {
	host, _, has := strings.Cut(image, "/")
	if !has || !strings.ContainsAny(host, ".:") && host != "localhost" || host == "docker.io" {
		return hub
	}
	return host
}

// tooMany is how a registry answers who has pulled as much as it allows.
var tooMany = regexp.MustCompile(`(?i)\b429\b|toomanyrequests|pull rate limit`)

// limited adds what lifts the limit of a registry, of which a report is.
func limited(f *stage.Finding, report string) {
	if tooMany.MatchString(report) {
		f.Detail("the image has the right name: its registry limits how much is pulled. The kubelet tries again by itself; credentials (imagePullSecrets), or a registry that mirrors it, lift the limit").Fact("limited", true)
	}
}
