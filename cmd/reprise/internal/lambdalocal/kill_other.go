//go:build !unix

package lambdalocal

import "os/exec"

// killable leaves cmd as it is: where there are no process groups, it is killed
// alone.
func killable(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
