import { link } from './live.js';
import { hrefOf, route } from './route.js';
import { session, signOut } from './session.js';
import { DevicePage } from './pages/device.js';
import { OverviewPage } from './pages/overview.js';
import { QueuePage } from './pages/queue.js';
import { SignInPage } from './pages/sign-in.js';

const pages = [
  { name: 'Overview', at: '' },
  { name: 'Queue', at: 'queue' },
] as const;

/** The whole page. */
export function Console() {
  const who = session.value;
  if (who === undefined) return <SignInPage />;
  const [first = '', id = ''] = route.value;
  return (
    <>
      <header>
        <a class="brand" href={hrefOf()}>
          gpuwhisk
        </a>
        <nav aria-label="Pages">
          {pages.map(({ name, at }) => (
            <a key={at} href={hrefOf(...(at === '' ? [] : [at]))} aria-current={first === at ? 'page' : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <a href="../docs/" target="_blank" rel="noreferrer">
          Docs
        </a>
        <Link />
        <span class="who">{who.isOperator ? 'operator' : who.namespace}</span>
        <button type="button" onClick={() => signOut()}>
          Sign out
        </button>
      </header>
      <main>
        {first === 'devices' ? <DevicePage uuid={id} /> : first === 'queue' ? <QueuePage /> : <OverviewPage />}
      </main>
    </>
  );
}

/** Whether what is shown is of now. */
function Link() {
  const words = { connecting: 'connecting', live: 'live', lost: 'connection lost, trying again' };
  return (
    <span class={`link ${link.value}`} role="status">
      {words[link.value]}
    </span>
  );
}
