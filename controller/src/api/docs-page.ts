/** A page that shows the Swagger document of this server that `?url=` names; by its title it is OpenWhisk's. */
export const docsPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Swagger UI</title>
<style>
  body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
  summary { cursor: pointer; }
  code { font-size: 14px; }
  .method { display: inline-block; font-weight: bold; width: 5em; }
</style>
</head>
<body>
<h1 id="title">API</h1>
<main></main>
<script>
  const asked = new URL(new URLSearchParams(location.search).get('url') ?? '/api/v1/api-docs', location.origin);
  const element = (name, text, ...children) => {
    const made = document.createElement(name);
    made.append(text, ...children);
    return made;
  };
  const method = (name) => Object.assign(element('span', name.toUpperCase()), { className: 'method' });
  function operation(path, name, { summary = '', parameters = [], responses = {} }) {
    const details = element('details', element('summary', method(name), element('code', path), ' ' + summary));
    const list = element('ul', '');
    for (const one of parameters) list.append(element('li', element('code', one.name), ' (' + one.in + ') ' + (one.description ?? '')));
    for (const [status, { description }] of Object.entries(responses)) list.append(element('li', status + ': ' + description));
    details.append(list);
    return details;
  }
  async function show() {
    if (asked.origin !== location.origin) throw new Error('only documents of this server are shown');
    const { info, basePath = '', paths } = await (await fetch(asked)).json();
    document.querySelector('#title').textContent = info.title + ' ' + info.version;
    for (const [path, operations] of Object.entries(paths))
      for (const [name, one] of Object.entries(operations)) document.querySelector('main').append(operation(basePath + path, name, one));
  }
  show().catch((error) => document.querySelector('main').append(element('p', 'The document cannot be shown: ' + error.message)));
</script>
</body>
</html>
`;
