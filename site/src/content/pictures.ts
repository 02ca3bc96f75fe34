import { readFileSync } from 'node:fs'
import { imageMetadata } from 'astro/assets/utils'
import { addresses, root } from './package.ts'

/** Sets the size of a page's images, so that the text below does not move when they load. */
export async function sizePictures(html: string): Promise<string> {
  const sources = new Set(Array.from(html.matchAll(/<img src="([^"]+)"/g), ([, source = '']) => source))
  let sized = html
  for (const source of sources) {
    const path = source.replace(`${addresses.base}files/`, '')
    const { width, height } = await imageMetadata(readFileSync(root + path), path)
    // The first image is usually in view.
    sized = sized.replaceAll(
      `<img src="${source}"`,
      `<img width="${width}" height="${height}" decoding="async" src="${source}"`,
    )
  }
  return sized
}
