import { checkInput, invalidInputError } from '../../../core/config/check-input.js'
import { record } from '../../../core/config/kind.js'
import { type McpAddress, serverAddress } from '../mcp-options.js'
import { authKind } from './auth-options.js'
import { createSignIn } from './sign-in.js'

// A separate module keeps the types of the optional package out of the public declarations.

/**
 * Finishes a sign-in for which `auth.signIn` resolved with undefined. The user has returned with this URL, possibly to
 * another process. `auth.store` must be the store of that user.
 *
 * @example
 * const auth: McpAuth = { redirectUrl: 'https://app.example.com/callback', signIn: () => undefined }
 * await finishMcpSignIn({ url: 'https://mcp.example.com', auth }, '/callback?code=1&state=2')
 * @throws {ConfigError} `invalid_config`
 * @throws {StatewrightError} `mcp_sign_in`
 */
export async function finishMcpSignIn(
  options: Required<Pick<McpAddress, 'url' | 'auth'>>,
  callback: string | URL,
): Promise<void> {
  checkInput(record({ url: serverAddress(), auth: authKind }), options, 'options of finishMcpSignIn', {
    isSecret: (path) => path.startsWith('auth'),
  })
  const { url, auth } = options
  if (typeof callback !== 'string' && !(callback instanceof URL))
    throw invalidInputError('callback of finishMcpSignIn', [
      { path: 'callback', sentence: 'callback must be the URL to which the user was redirected.' },
    ])
  // Some frameworks pass only the path.
  const came =
    typeof callback === 'string' && callback.startsWith('/') ? new URL(callback, auth.redirectUrl) : callback
  await createSignIn(url, auth).finish(came)
}
