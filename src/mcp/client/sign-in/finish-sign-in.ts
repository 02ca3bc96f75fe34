import { checkMcpOptions, type McpAddress } from '../mcp-options.js'
import { createSignIn } from './sign-in.js'

/**
 * Ends a sign-in for which `auth.signIn` resolved with undefined: the user has come back with this URL, perhaps to another
 * process. `auth.store` has to be the one of that user.
 *
 * @example
 * app.get('/callback', async (request, response) => {
 *   await finishMcpSignIn({ url, auth: authOf(request.user) }, request.originalUrl)
 *   response.send('You are signed in.')
 * })
 * @throws {StatewrightError} `mcp_sign_in`
 */
export async function finishMcpSignIn(
  options: Required<Pick<McpAddress, 'url' | 'auth'>>,
  callback: string | URL,
): Promise<void> {
  const { url, auth } = options
  checkMcpOptions({ url, auth })
  // A path alone is what frameworks give.
  const came =
    typeof callback === 'string' && callback.startsWith('/') ? new URL(callback, auth.redirectUrl) : callback
  await createSignIn(url, auth).finish(came)
}
