import type { Elicitation } from '../../../../machines/agent/run-result.js'
import { readProperty } from '../../../core/base/json.js'
import { hasUserInfo, isHttpUrl } from '../../../core/models/openai/openai-options.js'
import { cutText, quoteText, stripInvisible } from '../plain-text.js'
import { ElicitationFault, readForm } from './read-form.js'

const maxMessage = 4_000
const maxUrl = 2_000

/**
 * What a server asks a person, from the parameters of `elicitation/create`. All of it is a stranger's words.
 * @throws {ElicitationFault}
 */
export function readElicitation(params: unknown, server: string): Elicitation {
  const { mode = 'form', message, url, requestedSchema } = asObject(params)
  if (typeof message !== 'string' || message.trim() === '')
    throw new ElicitationFault('without saying what it wants')
  const head = { server, message: cutText(stripInvisible(message).trim(), maxMessage) }
  if (mode === 'url') return { ...head, mode, url: readUrl(url) }
  if (mode === 'form') return { ...head, mode, schema: readForm(requestedSchema) }
  throw new ElicitationFault(`in the mode ${quoteText(String(mode))}, which does not exist`)
}

/** A page that a person may be sent to. */
function readUrl(url: unknown): string {
  if (String(url).length > maxUrl || !isHttpUrl(url))
    throw new ElicitationFault(`to open ${quoteText(String(url).slice(0, 200))}, which is no http(s) address`)
  if (hasUserInfo(url))
    throw new ElicitationFault('to open an address with a user name in it, which hides where it leads')
  return new URL(url).href
}

function asObject(value: unknown): Record<string, unknown> {
  return Object.fromEntries(
    ['mode', 'message', 'url', 'requestedSchema'].map((key) => [key, readProperty(value, key)]),
  )
}
