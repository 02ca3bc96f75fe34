import { defineCollection } from 'astro:content'
import { z } from 'astro/zod'
import { docsSchema } from '@astrojs/starlight/schema'
import { summary } from './content/front-page.ts'
import { addresses } from './content/package.ts'
import { isMainGroup, listGroups } from './content/groups.ts'
import { readPages } from './content/pages.ts'
import { sizePictures } from './content/pictures.ts'

const { base } = addresses

const notFound = `The address may be mistyped, or the page has moved. Search with <kbd>Ctrl</kbd> <kbd>K</kbd>, or start here:

- [Tutorial](${base}docs/tutorial/): 15 minutes, without a key
- [Documentation](${base}docs/)
- [API reference](${base}api/)
- [Playground](${base}playground/)
- [Front page](${base})
`

const groups = listGroups()

/** The search ranks guides before the reference, and the reference before the changelog. */
function rankPage(id: string): number {
  const label = groups.find(({ items }) => items.some(({ slug }) => slug === id))?.label ?? ''
  if (isMainGroup(label)) return 4
  if (label.startsWith('More guides')) return 2
  return /^(changelog|contributing|security|files)/.test(id) ? 0.1 : id.startsWith('api/') ? 0.3 : 1
}

export const collections = {
  docs: defineCollection({
    schema: docsSchema({ extend: z.object({ searchWeight: z.number().default(1) }) }),
    loader: {
      name: 'documents of the package',
      async load(context) {
        const { store } = context
        store.clear()
        const { pages } = readPages()
        const missing = {
          id: '404',
          title: 'Page not found',
          description: 'There is no such page.',
          html: notFound,
        }
        for (const { id, title, description, html: body } of [...pages, missing]) {
          const isFront = id === 'index'
          const given = {
            title,
            description: isFront ? summary : description,
            searchWeight: rankPage(id),
            ...(isFront && { template: 'splash', hero: { tagline: summary } }),
            ...(id === '404' && { template: 'splash' }),
            ...(/^(files\/|404$)/.test(id) && { pagefind: false }),
          }
          const data = await context.parseData({ id, data: given })
          const rendered = await context.renderMarkdown(body)
          rendered.html = await sizePictures(rendered.html)
          const filePath = `src/content/docs/${id}.md`
          store.set({ id, data, body, rendered, filePath, digest: context.generateDigest(body) })
        }
      },
    },
  }),
}
