import type { MediaKind } from './media.js'
import type { ModelProvider } from './provider.js'

/** Families of models, wherever they are served, and what all of each take. */
const modelFamilies: readonly [name: RegExp, kinds: readonly MediaKind[]][] = [
  [
    /(^|[/.:])(gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4-turbo|gpt-5|o1(?!-mini|-preview)|o3(?!-mini)|o4)/,
    ['image', 'file'],
  ],
  [/(^|[/.:])claude-(3|opus|sonnet|haiku)/, ['image', 'file']],
  [/(^|[/.:])gemini-(?!embedding)/, ['image', 'audio', 'file']],
]

/** Whether a model is known to take such media: because it is said of it (`media`), or by its name. */
export function isKnownToAccept(
  { media, model }: Pick<ModelProvider, 'media' | 'model'>,
  kind: MediaKind,
): boolean {
  if (media !== undefined) return media.includes(kind)
  return modelFamilies.some(([name, kinds]) => name.test(model) && kinds.includes(kind))
}
