package failure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
)

var (
	tfjobs  = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
	getJob  = Op{Verb: "get", Resource: tfjobs, Kind: "TFJob", Namespace: "research", Name: "llama"}
	listAll = Op{Verb: "list", Resource: tfjobs, Kind: "TFJob"}
	listOne = Op{Verb: "list", Resource: tfjobs, Kind: "TFJob", Namespace: "research"}
)

func request(err error) error {
	return &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/apis/kubeflow.org/v1/tfjobs?limit=500", Err: err}
}

func TestFrom(t *testing.T) {
	denied := errors.New(`User "bob" cannot list resource "tfjobs" in API group "kubeflow.org" in the namespace "research"`)
	tests := []struct {
		name          string
		err           error
		message, hint string // hint: a part of it
		code          Code
	}{
		{"plain", errors.New("disk full"), "disk full", "", CodeError},
		{"usage, wrapped", fmt.Errorf("submit: %w", Usagef("bad").WithHint("try %s", "x")), "submit: bad", "try x", CodeUsage},
		{"interrupted", getJob.Wrap(context.Canceled), "interrupted", "", CodeInterrupted},
		{"401", getJob.Wrap(apierrors.NewUnauthorized("Unauthorized")),
			"get TFJob research/llama: the API server does not accept your credentials (401 Unauthorized)", "log in", CodeError},
		{"403 by RBAC", listOne.Wrap(apierrors.NewForbidden(tfjobs.GroupResource(), "", denied)),
			"list TFJobs in namespace research: tfjobs.kubeflow.org is forbidden: " + denied.Error(),
			"a Role in namespace research, bound to user \"bob\":\n  - apiGroups: [\"kubeflow.org\"]\n    resources: [\"tfjobs\"]\n    verbs: [\"list\"]", CodeError},
		{"403 by RBAC, everywhere", listAll.Wrap(apierrors.NewForbidden(tfjobs.GroupResource(), "", denied)),
			"list TFJobs in all namespaces: tfjobs.kubeflow.org is forbidden: " + denied.Error(), "a ClusterRole, bound to", CodeError},
		{"403 by what a quota makes mandatory", getJob.Wrap(apierrors.NewForbidden(tfjobs.GroupResource(), "llama", errors.New("failed quota: q: must specify limits.cpu for: tensorflow; limits.memory for: tensorflow"))),
			`get TFJob research/llama: tfjobs.kubeflow.org "llama" is forbidden: failed quota: q: must specify limits.cpu for: tensorflow; limits.memory for: tensorflow`,
			"the request and the limit with --cpu and --memory; or ask an administrator for a LimitRange with defaults: kubectl -n research describe resourcequota q", CodeError},
		{"403 by quota", getJob.Wrap(apierrors.NewForbidden(tfjobs.GroupResource(), "llama", errors.New("exceeded quota: q"))),
			`get TFJob research/llama: tfjobs.kubeflow.org "llama" is forbidden: exceeded quota: q`, "kubectl -n research describe resourcequota q; use less", CodeError},
		{"a policy", getJob.Wrap(apierrors.NewInvalid(schema.GroupKind{Kind: "TFJob"}, "llama", field.ErrorList{field.Forbidden(field.NewPath("spec"), "ValidatingAdmissionPolicy 'no-ps' with binding 'all' denied request: no PS")})),
			`get TFJob research/llama: TFJob "llama" is invalid: spec: Forbidden: ValidatingAdmissionPolicy 'no-ps' with binding 'all' denied request: no PS`, "kubectl get validatingadmissionpolicy no-ps -o yaml", CodeError},
		{"a webhook", getJob.Wrap(apierrors.NewForbidden(tfjobs.GroupResource(), "llama", errors.New(`admission webhook "w.example.com" denied the request: no`))),
			`get TFJob research/llama: tfjobs.kubeflow.org "llama" is forbidden: admission webhook "w.example.com" denied the request: no`, "who runs the webhook w.example.com", CodeError},
		{"a namespace that ends", getJob.Wrap(apierrors.NewForbidden(tfjobs.GroupResource(), "llama", errors.New("unable to create new content in namespace research because it is being terminated"))),
			`get TFJob research/llama: tfjobs.kubeflow.org "llama" is forbidden: unable to create new content in namespace research because it is being terminated`, "choose another one with -n", CodeError},
		{"no dry run", getJob.Wrap(apierrors.NewBadRequest(`admission webhook "w" does not support dry run`)),
			`get TFJob research/llama: admission webhook "w" does not support dry run`, "sideEffects", CodeError},
		{"404 object", getJob.Wrap(apierrors.NewNotFound(tfjobs.GroupResource(), "llama")), "get TFJob research/llama: not found", "", CodeError},
		{"404 namespace", getJob.Wrap(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "research")),
			`get TFJob research/llama: namespaces "research" not found`, "kubectl create namespace research", CodeError},
		{"404 CRD", listOne.Wrap(apierrors.NewGenericServerResponse(404, "GET", tfjobs.GroupResource(), "", "404 page not found", 0, true)),
			"list TFJobs in namespace research: the cluster does not serve tfjobs.kubeflow.org (v1)", "Training Operator", CodeError},
		{"404 of what every server has", Op{Verb: "list", Kind: "Lease"}.Wrap(apierrors.NewGenericServerResponse(404, "GET", schema.GroupResource{}, "", "<html>", 0, true)),
			"list Leases in all namespaces: what answers is no Kubernetes API server: it does not know what each of them serves (404)", "kubectl config view", CodeError},
		{"404 of Jobs", Op{Verb: "list", Kind: "Job", Resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}}.Wrap(apierrors.NewGenericServerResponse(404, "GET", schema.GroupResource{}, "", "<html>", 0, true)),
			"list Jobs in all namespaces: what answers is no Kubernetes API server: it does not know what each of them serves (404)", "kubectl config view", CodeError},
		{"no match", getJob.Wrap(&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "TFJob"}}),
			"get TFJob research/llama: the cluster does not serve tfjobs.kubeflow.org (v1)", "gangctl-sandbox up", CodeError},
		{"no operator", Op{Verb: "create", Kind: "RayJob", Resource: schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}}.Wrap(&meta.NoKindMatchError{}),
			"create RayJobs in all namespaces: the cluster does not serve rayjobs.ray.io (v1)", "ask an administrator to install KubeRay", CodeError},
		{"no dialect", Op{Verb: "create", Kind: "PodGroup", Name: "a", Resource: schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}}.Wrap(&meta.NoKindMatchError{}),
			"create PodGroup a: the cluster does not serve podgroups.scheduling.volcano.sh (v1beta1)", "--dialect auto", CodeError},
		{"409", getJob.Wrap(apierrors.NewConflict(tfjobs.GroupResource(), "llama", errors.New("the object has been modified"))),
			`get TFJob research/llama: Operation cannot be fulfilled on tfjobs.kubeflow.org "llama": the object has been modified`, "run the command again", CodeError},
		{"500", getJob.Wrap(apierrors.NewInternalError(errors.New("etcd"))),
			"get TFJob research/llama: Internal error occurred: etcd", "readyz", CodeError},
		{"503", getJob.Wrap(apierrors.NewServiceUnavailable("starting")), "get TFJob research/llama: starting", "readyz", CodeError},
		{"refused", getJob.Wrap(request(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})),
			"get TFJob research/llama: cannot reach the API server at https://10.0.0.1:6443: dial tcp: connect: connection refused", "get-contexts", CodeError},
		{"no such host", request(&net.DNSError{Err: "no such host", Name: "kube.example"}),
			"cannot reach the API server at https://10.0.0.1:6443: lookup kube.example: no such host", "get-contexts", CodeError},
		{"certificate", getJob.Wrap(request(x509.UnknownAuthorityError{})),
			"get TFJob research/llama: the certificate of the API server at https://10.0.0.1:6443 is not trusted: x509: certificate signed by unknown authority",
			"--certificate-authority", CodeError},
		{"expired certificate", getJob.Wrap(request(&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}})),
			"get TFJob research/llama: the certificate of the API server at https://10.0.0.1:6443 has expired, or is not valid yet: tls: failed to verify certificate: x509: certificate has expired or is not yet valid: ",
			"renews it", CodeError},
		{"certificate of another name", getJob.Wrap(request(x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"kube"}}, Host: "localhost"})),
			"get TFJob research/llama: the certificate of the API server at https://10.0.0.1:6443 is for another name: x509: certificate is valid for kube, not localhost", "--tls-server-name", CodeError},
		{"late body", listOne.Wrap(fmt.Errorf("read list: %w", os.ErrDeadlineExceeded)),
			"list TFJobs in namespace research: the API server did not complete its answer in time", "--request-timeout", CodeError},
		{"page with 200", listOne.Wrap(fmt.Errorf("read list: %w", json.Unmarshal([]byte("<html>"), new(any)))),
			"list TFJobs in namespace research: read list: invalid character '<' looking for beginning of value", "login page", CodeError},
		{"a file", json.Unmarshal([]byte("<html>"), new(any)), "invalid character '<' looking for beginning of value", "", CodeError},
		{"no login", getJob.Wrap(request(errors.New("getting credentials: exec: executable aws failed with exit code 7"))),
			"get TFJob research/llama: cannot get credentials: exec: executable aws failed with exit code 7", "log in to the cluster again", CodeError},
		{"timeout", getJob.Wrap(request(context.DeadlineExceeded)),
			"get TFJob research/llama: no answer from the API server at https://10.0.0.1:6443 in time: context deadline exceeded", "--request-timeout", CodeError},
		{"reset", getJob.Wrap(request(errors.New("EOF"))),
			"get TFJob research/llama: the connection to the API server at https://10.0.0.1:6443 failed: EOF", "kubectl config view", CodeError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := From(tt.err)
			if got.Message != tt.message || got.Code != tt.code {
				t.Errorf("got  %q (%d)\nwant %q (%d)", got.Message, got.Code, tt.message, tt.code)
			}
			if !strings.Contains(got.Hint, tt.hint) || (tt.hint == "") != (got.Hint == "") {
				t.Errorf("hint: got %q, want a part %q", got.Hint, tt.hint)
			}
			if !errors.Is(got, tt.err) {
				t.Error("the cause is lost")
			}
		})
	}
	if From(nil) != nil || getJob.Wrap(nil) != nil || All(nil, nil) != nil {
		t.Error("no error must stay no error")
	}
}

func TestPrint(t *testing.T) {
	s, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	err := All(nil, Errorf("one"), WithCode(CodeTimedOut, "two").WithHint("look"), getJob.Wrap(apierrors.NewGenericServerResponse(http.StatusConflict, "POST", tfjobs.GroupResource(), "llama", "", 0, true)))
	Print(s, From(err))
	want := "error: one\nerror: two\nerror: get TFJob research/llama: the server reported a conflict (post tfjobs.kubeflow.org llama)\nhint: look\n"
	if errOut.String() != want || out.Len() != 0 {
		t.Errorf("got %q", errOut)
	}
	if From(err).Code != CodeError {
		t.Errorf("code %d", From(err).Code)
	}
	errOut.Reset()
	s.SetTerminal(80)
	Print(s, Errorf("x"))
	if errOut.String() != "\x1b[1;31merror:\x1b[0m x\n" {
		t.Errorf("on a terminal: %q", errOut)
	}
}

// What passes is tried again, what stays is not.
func TestTransient(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"none":             {nil, false},
		"overloaded":       {apierrors.NewTooManyRequests("busy", 1), true},
		"starting":         {fmt.Errorf("list pods: %w", apierrors.NewServiceUnavailable("starting")), true},
		"connection lost":  {request(io.ErrUnexpectedEOF), true},
		"interrupted":      {request(context.Canceled), false},
		"no such host":     {request(&net.DNSError{Err: "no such host", Name: "x"}), false},
		"expired":          {request(x509.CertificateInvalidError{Reason: x509.Expired}), false},
		"not trusted":      {request(x509.UnknownAuthorityError{}), false},
		"no login":         {request(errors.New("getting credentials: exec: executable aws failed with exit code 7")), false},
		"refused":          {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil), false},
		"changed meantime": {apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", nil), false},
	} {
		if got := Transient(tt.err); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
