import { StatewrightError, UsageError } from '../core/base/errors.js'

/** The longest body of a request unless the handler says otherwise, in bytes: some pictures fit in. */
export const defaultMaxBodyBytes = 10_000_000

/**
 * Guards each request that changes something, whether or not its body is read: the page of another origin can send forms
 * and plain texts to any address, but JSON only where CORS allows it.
 *
 * @throws {StatewrightError} `wrong_content_type`
 */
export function checkContentType(request: Request): void {
  const type = request.headers.get('content-type') ?? ''
  if (/^application\/json\s*(;|$)/i.test(type)) return
  void request.body?.cancel().catch(() => undefined)
  throw new StatewrightError(
    'wrong_content_type',
    'Send JSON: content-type: application/json.',
    'content-type',
  )
}

/**
 * The body of a request: an object in JSON. Of one that is too long no more is read than it takes to know that.
 *
 * @throws {StatewrightError} `too_large`
 * @throws {UsageError} `invalid_input` for what is no JSON, or no object
 */
export async function readJson(
  request: Request,
  maxBytes: number = defaultMaxBodyBytes,
): Promise<Record<string, unknown>> {
  const body = parseJson(await readText(request, maxBytes))
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    return body as Record<string, unknown>
  throw new UsageError('invalid_input', 'The body must be an object in JSON.', 'body')
}

async function readText(request: Request, maxBytes: number): Promise<string> {
  if (Number(request.headers.get('content-length')) > maxBytes) {
    await request.body?.cancel().catch(() => undefined)
    throw tooLargeError(maxBytes)
  }
  const reader = request.body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
    bytes += read.value.byteLength
    if (bytes > maxBytes) {
      void reader?.cancel().catch(() => undefined)
      throw tooLargeError(maxBytes)
    }
    text += decoder.decode(read.value, { stream: true })
  }
  return text + decoder.decode()
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new UsageError('invalid_input', 'The body is no JSON.', 'body', { cause })
  }
}

function tooLargeError(maxBytes: number): StatewrightError {
  return new StatewrightError(
    'too_large',
    `A request may have ${maxBytes} bytes: send the last message alone, and large files by their address.`,
    'maxBodyBytes',
  )
}
