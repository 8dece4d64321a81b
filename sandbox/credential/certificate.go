package credential

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/gangctl/gangctl/sandbox/datadir"
)

// lifetime of certificates; no sandbox is kept that long.
const lifetime = 10 * 365 * 24 * time.Hour

// CA is the certificate that signs the others.
func CA(dir datadir.Dir) string { return dir.Path("pki", "ca.crt") }

// Serving is the certificate and key of every server on 127.0.0.1.
func Serving(dir datadir.Dir) (cert, key string) {
	return dir.Path("pki", "serving.crt"), dir.Path("pki", "serving.key")
}

// KubeletClient is the client certificate of the API server towards kubelets.
func KubeletClient(dir datadir.Dir) (cert, key string) {
	return dir.Path("pki", "kubelet-client.crt"), dir.Path("pki", "kubelet-client.key")
}

// ServiceAccountKey signs the tokens of service accounts.
func ServiceAccountKey(dir datadir.Dir) string { return dir.Path("pki", "service-account.key") }

func ensureCertificates(dir datadir.Dir) error {
	// The last file to be written shows that all are there.
	if _, err := os.Stat(ServiceAccountKey(dir)); err == nil {
		return nil
	}
	now := time.Now()
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial),
			Subject:      pkix.Name{CommonName: name},
			NotBefore:    now.Add(-time.Hour),
			NotAfter:     now.Add(lifetime),
			KeyUsage:     x509.KeyUsageDigitalSignature,
		}
	}
	ca := template(1, "gangctl-sandbox-ca")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	serving := template(2, "gangctl-sandbox")
	serving.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	serving.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	serving.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	client := template(3, "kube-apiserver-kubelet-client")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}

	caKey, err := issue(dir, "ca", ca, ca, nil)
	if err != nil {
		return err
	}
	if _, err := issue(dir, "serving", serving, ca, caKey); err != nil {
		return err
	}
	if _, err := issue(dir, "kubelet-client", client, ca, caKey); err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make service account key: %w", err)
	}
	return writePEM(dir, "service-account.key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
}

// issue makes a key and its certificate; without a signer it signs itself.
func issue(dir datadir.Dir, name string, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key of %s: %w", name, err)
	}
	if signer == nil {
		signer = key
	}
	cert, certErr := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	encoded, keyErr := x509.MarshalECPrivateKey(key)
	if err := errors.Join(certErr, keyErr); err != nil {
		return nil, fmt.Errorf("make certificate of %s: %w", name, err)
	}
	if err := writePEM(dir, name+".key", "EC PRIVATE KEY", encoded); err != nil {
		return nil, err
	}
	return key, writePEM(dir, name+".crt", "CERTIFICATE", cert)
}

func writePEM(dir datadir.Dir, name, kind string, der []byte) error {
	return dir.WriteFile("pki/"+name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
