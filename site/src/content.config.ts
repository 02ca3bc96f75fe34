import { defineCollection } from 'astro:content'
import { docsSchema } from '@astrojs/starlight/schema'
import { readPages } from './content/pages.ts'
import { sizePictures } from './content/pictures.ts'

const hero = {
  tagline:
    'The agent loop as one explicit statechart: a TypeScript library that you embed, watch, interrupt and trust.',
  actions: [
    { text: 'Read the documents', link: 'docs/', icon: 'right-arrow' },
    { text: 'Try it in this page', link: 'playground/', variant: 'secondary' },
  ],
}

export const collections = {
  docs: defineCollection({
    schema: docsSchema(),
    loader: {
      name: 'documents of the package',
      async load(context) {
        const { store } = context
        store.clear()
        for (const { id, title, description, html: body } of readPages().pages) {
          const isFront = id === 'index'
          const given = {
            title,
            description: isFront ? hero.tagline : description,
            ...(isFront && { template: 'splash', hero }),
            ...(id.startsWith('files/') && { pagefind: false }),
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
