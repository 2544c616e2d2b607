def main(args):
    """Greets whoever parameter `name` names."""
    return {"greeting": "Hello, %s!" % args.get("name", "stranger")}
