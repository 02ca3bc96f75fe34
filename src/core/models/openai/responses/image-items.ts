import type { JsonObject } from '../../../../../machines/agent/json.js'
import type { MediaPart } from '../../../../../machines/agent/messages.js'
import { asText } from '../../../base/values.js'
import { toContentPart } from '../../media.js'

export function isImageCall({ type }: JsonObject): boolean {
  return type === 'image_generation_call'
}

/** The pictures that the provider's own tool has made. */
export function readPictures(items: readonly JsonObject[]): MediaPart[] {
  return items.filter(isImageCall).flatMap(readPicture)
}

/** The item without its picture, which the message has in its `media`: here it has the length of its base64. */
export function stripPicture(item: JsonObject): JsonObject {
  // No other field is taken back.
  const { id = '', type = '', status = 'completed' } = item
  const hasPicture = readPicture(item).length > 0
  return { id, type, status, result: hasPicture ? asText(item.result).length : null }
}

/** Puts the picture back into an item that was stored without it. Null when the picture is not the one of this item. */
export function restorePicture(item: JsonObject, picture: MediaPart | undefined): JsonObject | null {
  const url = picture?.type === 'image_url' ? picture.image_url.url : ''
  const result = url.slice(url.indexOf(',') + 1)
  return result.length === item.result ? { ...item, result } : null
}

function readPicture({ result, output_format: format }: JsonObject): MediaPart[] {
  const mediaType = asText(format) === '' ? {} : { mediaType: `image/${asText(format)}` }
  try {
    const part = toContentPart({ type: 'image', image: asText(result), ...mediaType }, 'result')
    return part.type === 'text' ? [] : [part]
  } catch {
    // No picture has come, or none that can be read.
    return []
  }
}
