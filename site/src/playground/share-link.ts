import type { Draft } from './examples.ts'

/** The maximum length of a link, and of its decompressed text. A malicious link must not exhaust the memory. */
const maxLink = 32_768
const maxText = 262_144

/** An unreadable link. The message is for people. */
export class LinkError extends Error {
  override readonly name = 'LinkError'
}

/** The link fragment after `#`. It contains only the draft, as compressed JSON. It never contains a key. */
export async function writeLink({ input, script, settings }: Draft): Promise<string> {
  const text = JSON.stringify([1, input, script, settings])
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('deflate-raw'))
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer())
  const link = `s=${btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(''))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')}`
  if (text.length > maxText || link.length > maxLink) {
    throw new LinkError(
      `The script is too long for a link. The link would have ${link.length.toLocaleString('en')} characters, and at most ${maxLink.toLocaleString('en')} are allowed.`,
    )
  }
  return link
}

/**
 * The content of a link. Null for a link without content.
 *
 * @throws LinkError for a damaged or oversized link
 */
export async function readLink(hash: string): Promise<Draft | null> {
  const [, coded] = /^#?s=(.*)$/s.exec(hash) ?? []
  if (coded === undefined) return null
  if (coded.length > maxLink) throw new LinkError('This link is too long for the playground.')
  let value: unknown
  try {
    const bytes = Uint8Array.from(atob(coded.replaceAll('-', '+').replaceAll('_', '/')), (one) =>
      one.charCodeAt(0),
    )
    value = JSON.parse(await inflate(bytes))
  } catch (error) {
    if (error instanceof LinkError) throw error
    throw new LinkError('This link is damaged: part of it is missing or was changed. Ask for the link again.')
  }
  const [version, ...texts] = Array.isArray(value) ? value : []
  if (version !== 1 || texts.length !== 3 || !texts.every((text) => typeof text === 'string'))
    throw new LinkError('This link was created by another version of the playground.')
  const [input = '', script = '', settings = ''] = texts as string[]
  return { input, script, settings }
}

async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader()
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    text += decoder.decode(value, { stream: true })
    if (text.length > maxText) {
      await reader.cancel()
      throw new LinkError('This link contains more than a script, so it was not opened.')
    }
  }
}
