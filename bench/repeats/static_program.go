// SPDX-License-Identifier: Apache-2.0

// Writes, renames, removes and changes modes below a folder. A Go program calls the kernel without the C library.
package main

import (
	"fmt"
	"os"
)

func main() {
	folder := os.Args[1]
	tries := map[string]error{
		"write":   os.WriteFile(folder+"/file", []byte("written"), 0o644),
		"create":  os.WriteFile(folder+"/new", nil, 0o644),
		"rename":  os.Rename(folder+"/file", folder+"/renamed"),
		"chmod":   os.Chmod(folder+"/file", 0o777),
		"symlink": os.Symlink("file", folder+"/link"),
		"remove":  os.RemoveAll(folder + "/tree"),
	}
	for name, err := range tries {
		fmt.Println(name, err)
	}
}
