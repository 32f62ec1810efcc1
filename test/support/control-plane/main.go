// Command controlplane bundles etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl.
//
// The five share nearly all of their code, so one binary compiles and links in a fifth of the time and space of
// five. Like busybox it runs the program whose name it was called by.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// kubernetesPrograms are built on call: some of their constructors register global flags.
var kubernetesPrograms = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	if build, known := kubernetesPrograms[name]; known {
		os.Exit(cli.Run(build()))
	}
	known := append(slices.Sorted(maps.Keys(kubernetesPrograms)), "etcd")
	fmt.Fprintf(os.Stderr, "no program %q in here; link this file as one of: %s\n", name, strings.Join(known, ", "))
	os.Exit(2)
}
