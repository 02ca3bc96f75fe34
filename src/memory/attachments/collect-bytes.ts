import { AttachmentError } from './attachment-error.js'

/** All bytes of a source, which is left as soon as there are more than `maxBytes`. */
export async function collectBytes(
  source: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    size += chunk.length
    if (size > maxBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

export function tooLargeError(name: string, maxBytes: number): AttachmentError {
  return new AttachmentError(
    'too_large',
    name,
    `is larger than ${maxBytes} bytes. Raise maxBytes if it is meant to be.`,
  )
}
