package component

import (
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// A provisioner is found by its name in an argument, or by what it is called; two letters in another word are no name.
func TestProvisioners(t *testing.T) {
	c := clustertest.New()
	c.Deployment("kube-system", "ebs-csi-controller", "ebs-csi-driver:v1")
	c.Deployment("kube-system", "csi-azuredisk-controller", "azuredisk-csi:v1")
	c.Deployment("kube-system", "csi-updater", "csi-updater:v1")
	c.Deployment("kube-system", "csi-rbdplugin-provisioner", "cephcsi:v3", "--drivername=rook-ceph.rbd.csi.ceph.com")
	c.Deployment("kube-system", "local-path-provisioner", "local-path-provisioner:v0")
	c.Deployment("kube-system", "trident-controller", "netapp/trident-csi:v24")
	v := view.New(c.Done())
	for provisioner, want := range map[string]string{
		"ebs.csi.aws.com": "ebs-csi-controller", "disk.csi.azure.com": "csi-azuredisk-controller", "pd.csi.storage.gke.io": "", "rook-ceph.rbd.csi.ceph.com": "csi-rbdplugin-provisioner",
		"rancher.io/local-path": "local-path-provisioner", "csi.trident.netapp.io": "trident-controller", "csi.vastdata.com": "", "x/": "",
	} {
		got := ""
		for _, d := range Provisioners(v, provisioner) {
			got += d.Name
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", provisioner, got, want)
		}
	}
}
