import type { InputPart } from '../core/models/media.js'
import { toolContent } from '../core/tools/tool-content.js'
import { ToolError } from '../core/tools/tool-error.js'

type Fields = Record<string, unknown>

/**
 * What `toModelOutput` of a tool returned, as the result of a tool here.
 *
 * @throws {ToolError} for an output that is an error, or a denial
 */
export function toToolOutput(given: unknown): unknown {
  const { type, value, reason } = (given ?? {}) as Fields
  switch (type) {
    case 'text':
    case 'json':
      return value
    case 'error-text':
    case 'error-json':
      throw new ToolError('failed', typeof value === 'string' ? value : JSON.stringify(value))
    case 'execution-denied':
      throw new ToolError('policy_denied', typeof reason === 'string' ? reason : 'The call was denied.')
    case 'content':
      return toolContent((value as Fields[]).map(toPart))
    default:
      throw new ToolError(
        'failed',
        `toModelOutput returned the type ${JSON.stringify(type)}, which is not supported.`,
      )
  }
}

function toPart(part: Fields): InputPart {
  const { type, text, data, url, mediaType, filename } = part
  if (type === 'text') return { type, text: text as string }
  const isFile = type === 'file' && typeof data === 'object' && data !== null
  const payload = isFile ? ((data as Fields)['data'] ?? (data as Fields)['url']) : (data ?? url)
  const known = /^(media|file|(file|image)-(data|url))$/.test(String(type))
  if (!known || payload === undefined)
    throw new ToolError(
      'failed',
      `toModelOutput returned a part ${JSON.stringify(type)}, which is not supported.`,
    )
  const isImage = String(type).startsWith('image-') || /^image(\/|$)/.test(String(mediaType))
  const source = payload as string
  if (isImage)
    return {
      type: 'image',
      image: source,
      ...(typeof mediaType === 'string' && mediaType.includes('/') && { mediaType }),
    }
  return {
    type: 'file',
    data: source,
    mediaType: mediaType as string,
    ...(typeof filename === 'string' && { filename }),
  }
}
