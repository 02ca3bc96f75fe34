import { StatewrightError, UsageError } from '../core/base/errors.js'

/** The default limit of a request body in bytes: enough for some pictures. */
export const defaultMaxBodyBytes = 10_000_000

/**
 * Refuses requests that are not JSON, whether or not their body is read. A page of another origin can send forms and plain
 * text to any address, but JSON only when CORS allows it.
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
 * Reads the JSON object in the body of a request. Reading stops when the body exceeds the limit.
 *
 * @throws {StatewrightError} `too_large`
 * @throws {UsageError} `invalid_input` when the body is not JSON or not an object
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
    throw new UsageError('invalid_input', 'The body is not JSON.', 'body', { cause })
  }
}

function tooLargeError(maxBytes: number): StatewrightError {
  return new StatewrightError(
    'too_large',
    `A request may have ${maxBytes} bytes: send the last message alone, and large files by their address.`,
    'maxBodyBytes',
  )
}
