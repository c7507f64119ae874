"""From a blog's posts to the text that language models read: Markdown and JSX taken away, words and code kept."""
