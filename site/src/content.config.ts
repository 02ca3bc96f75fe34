import { defineCollection } from 'astro:content'
import { z } from 'astro/zod'
import { docsSchema } from '@astrojs/starlight/schema'
import { summary } from './content/front-page.ts'
import { isMainGroup, listGroups } from './content/groups.ts'
import { readPages } from './content/pages.ts'
import { sizePictures } from './content/pictures.ts'

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
        for (const { id, title, description, html: body } of pages) {
          const isFront = id === 'index'
          const frontmatter = {
            title,
            description: isFront ? summary : description,
            searchWeight: rankPage(id),
            ...(isFront && { template: 'splash', hero: { tagline: summary } }),
            ...(id.startsWith('files/') && { pagefind: false }),
          }
          const data = await context.parseData({ id, data: frontmatter })
          const rendered = await context.renderMarkdown(body)
          rendered.html = await sizePictures(rendered.html)
          const filePath = `src/content/docs/${id}.md`
          store.set({ id, data, body, rendered, filePath, digest: context.generateDigest(body) })
        }
      },
    },
  }),
}
