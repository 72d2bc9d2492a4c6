// Package access decides who may call this server: tokens, principals, and the
// guards on Host and Origin. Credentials for providers are another matter and
// are called accounts.
package access

import "github.com/switchyard-dev/switchyard/id"

// Principal is an authenticated caller.
type Principal struct {
	// TokenID names the token that was shown; "" for the server itself.
	TokenID id.Token
	// Name is for logs.
	Name string
}
